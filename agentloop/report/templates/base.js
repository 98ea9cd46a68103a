"use strict";
// What all parts of the page use: elements, packed data, words. Text from outside only ever becomes a text node.

const STATUS = { p: "pass", f: "fail", u: "unjudged" };
const MARK = { pass: "✓", fail: "✗", unjudged: "?" };
const words = { labels: {}, kinds: {}, tiers: {} }; // of authors, failure kinds and tiers; filled from the index

const byId = (id) => document.getElementById(id);

/** An element. `attributes` may hold listeners (onclick) and `class`; children are elements, text or lists of them, empty ones skipped. */
function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false && child !== "") element.append(child);
  }
  return element;
}

/** The JSON in a packed block: base64 of gzip. */
async function unpack(block) {
  const text = atob(block.textContent.trim());
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

const chip = (status, text) => h("span", { class: `chip ${status}` }, `${MARK[status] || ""} ${text || status}`);

const label = (author) => (words.labels[author] ? [" ", h("span", { class: "label" }, words.labels[author])] : []);

const episodeLink = (id) => `#/episode/${encodeURIComponent(id)}`;

/** A command with a button that copies it; where there is no clipboard it is selected. */
function command(text) {
  return h("div", { class: "command" }, h("code", {}, text), h("button", { type: "button", "data-copy": text }, "copy"));
}

async function copy(button) {
  const code = button.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "copied";
  } catch {
    getSelection().selectAllChildren(code);
    button.textContent = "selected";
  }
  setTimeout(() => { button.textContent = "copy"; }, 1500);
}

/** Header buttons that sort a static table by its cells' data-value or text. */
function sortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    if (head.classList.contains("bar")) return;
    const button = h("button", { type: "button" });
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows].sort((a, b) => compare(cellValue(a, column), cellValue(b, column)));
      table.tBodies[0].append(...(down ? rows.reverse() : rows));
    });
  });
}

const cellValue = (row, column) => {
  const cell = row.cells[column];
  return cell.dataset.value !== undefined ? cell.dataset.value : cell.textContent.trim();
};

/** Numbers by size, all else by words; numbers inside words count too. */
function compare(a, b) {
  if (a !== "" && b !== "" && !isNaN(a) && !isNaN(b)) return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}
