// A candidate's source in colour, and the difference between two of them.

const PYTHON = new RegExp([
  "(?<comment>#[^\\n]*)",
  "(?<string>[rbfuRBFU]{0,2}(?:\"\"\"[\\s\\S]*?(?:\"\"\"|$)|'''[\\s\\S]*?(?:'''|$)|\"(?:\\\\.|[^\"\\\\\\n])*\"?|'(?:\\\\.|[^'\\\\\\n])*'?))",
  "(?<decorator>(?<=^[ \\t]*)@[\\w.]+)",
  "(?<keyword>\\b(?:and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import"
    + "|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield|None|True|False)\\b)",
  "(?<number>\\b(?:0[xXbBoO][\\da-fA-F_]+|\\d[\\d_]*\\.?[\\d_]*(?:[eE][+-]?\\d+)?)\\b)",
  "(?<name>[A-Za-z_]\\w*)",
].join("|"), "gm");

/** Pieces of Python source as [class or "", text], in order; joined they are the source again. */
function tokens(source) {
  const pieces = [];
  let end = 0;
  for (const match of source.matchAll(PYTHON)) {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    if (kind === "name" || !match[0]) continue;
    if (match.index > end) pieces.push(["", source.slice(end, match.index)]);
    pieces.push([`t-${kind}`, match[0]]);
    end = match.index + match[0].length;
  }
  if (end < source.length) pieces.push(["", source.slice(end)]);
  return pieces;
}

/** The source, numbered and coloured, with the lines that a failure names marked. */
function painted(source, blamed) {
  const line = () => h("span", { class: blamed.has(lines.length + 1) ? "l blamed" : "l" });
  const lines = [];
  lines.push(line());
  for (const [kind, text] of tokens(source.replace(/\n$/, ""))) {
    text.split("\n").forEach((part, index) => {
      if (index) lines.push(line());
      if (part) lines[lines.length - 1].append(kind ? h("span", { class: kind }, part) : part);
    });
  }
  return h("pre", { class: "source" }, lines);
}

/** Lines that a message of the oracle names: "… line 13". */
const blamedLines = (words) => new Set([...words.matchAll(/\bline (\d+)/g)].map((match) => Number(match[1])));

/** Difference of two texts as [sign, line]: common ends first, then the longest common subsequence of the rest. */
function difference(before, after) {
  const a = before.split("\n"), b = after.split("\n");
  let head = 0, tail = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const middle = changes(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  const same = (lines) => lines.map((line) => [" ", line]);
  return [...same(a.slice(0, head)), ...middle, ...same(a.slice(a.length - tail))];
}

const CELLS = 4e6; // a larger table of line pairs would stop the page: all removed, all added then

function changes(a, b) {
  if (a.length * b.length > CELLS) return [...a.map((line) => ["-", line]), ...b.map((line) => ["+", line])];
  const width = b.length + 1, common = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const below = common[(i + 1) * width + j], right = common[i * width + j + 1];
      common[i * width + j] = a[i] === b[j] ? common[(i + 1) * width + j + 1] + 1 : Math.max(below, right);
    }
  }
  const out = [];
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { out.push([" ", a[i]]); i++; j++; }
    else if (i < a.length && (j === b.length || common[(i + 1) * width + j] >= common[i * width + j + 1])) out.push(["-", a[i++]]);
    else out.push(["+", b[j++]]);
  }
  return out;
}

const CONTEXT = 3; // unchanged lines shown around a change

function differenceView(before, after) {
  const lines = difference(before, after);
  const near = new Uint8Array(lines.length);
  lines.forEach(([sign], at) => { if (sign !== " ") near.fill(1, Math.max(0, at - CONTEXT), at + CONTEXT + 1); });
  const kinds = { "+": "added", "-": "removed", " ": "same" };
  const shown = [];
  lines.forEach(([sign, line], at) => {
    if (near[at]) shown.push(h("span", { class: kinds[sign] }, `${sign} ${line}`));
    else if (at === 0 || near[at - 1]) shown.push(h("span", { class: "gap" }, "⋯"));
  });
  return h("pre", { class: "diff" }, shown);
}
