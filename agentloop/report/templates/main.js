// Opens the index, follows the address, listens to keys.

let list = null;
let blocks = [];
let opened = null; // the episode that is looked at

/** Details of the episode at `place` of the index, or null; the last block decoded is kept. */
const details = (() => {
  let kept = { block: null, data: null };
  return async (place) => {
    const block = blocks.find((each) => place >= +each.dataset.first && place < +each.dataset.first + +each.dataset.count);
    if (!block) return [null, []];
    if (kept.block !== block) kept = { block, data: await unpack(block) };
    return [kept.data.episodes[place - block.dataset.first], kept.data.texts];
  };
})();

async function openEpisode(id, round) {
  const place = list.index.episodes.findIndex((episode) => episode.id === id);
  if (place < 0) return showOverview(byId("episodes"));
  const episode = list.index.episodes[place];
  const [rounds, texts] = await details(place);
  const at = list.visible.indexOf(episode);
  const neighbours = at < 0 ? [] : [list.visible[at - 1], list.visible[at + 1]];
  opened = { episode, neighbours };
  byId("overview").hidden = true;
  byId("episode").hidden = false;
  byId("episode").replaceChildren(episodeView(episode, rounds, texts, neighbours, list.address()));
  document.title = `${episode.task} · agentloop`;
  const target = round !== undefined && byId(`round-${round}`);
  if (target) target.scrollIntoView();
  else scrollTo(0, 0);
  byId("episode").querySelector("h1").focus({ preventScroll: true });
}

function showOverview(target) {
  const before = opened;
  opened = null;
  byId("episode").hidden = true;
  byId("episode").replaceChildren();
  byId("overview").hidden = false;
  document.title = `agentloop: ${document.body.dataset.run}`;
  if (target) {
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    const set = target.closest(".cards");
    if (set) document.querySelector(`input[name=set][value=${set.className.split("set-")[1]}]`).checked = true;
    target.scrollIntoView();
  }
  const row = before && byId("list").querySelector(`a[href="${episodeLink(before.episode.id)}"]`);
  if (row) { row.focus({ preventScroll: true }); row.scrollIntoView({ block: "center" }); }
}

/** A fragment's text; one that is not well formed as it is. */
function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

/** #/episode/ID[/ROUND], #/episodes?filters, or the id of a section or row. */
async function follow() {
  const address = location.hash.slice(1);
  const episode = address.match(/^\/episode\/([^/]+)(?:\/(\d+))?$/);
  if (episode) return openEpisode(decoded(episode[1]), episode[2]);
  if (address.startsWith("/episodes")) {
    list.show(Object.fromEntries(new URLSearchParams(address.split("?")[1] || "")));
    return showOverview(byId("episodes"));
  }
  return showOverview(address ? byId(decoded(address)) : null);
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !list) return;
  const typing = event.target.closest("input[type=search], select");
  if (event.key === "Escape") {
    if (opened) location.hash = list.address();
    else if (typing) event.target.blur();
    return;
  }
  if (typing) return;
  const step = { j: 1, k: -1 }[event.key];
  if (event.key === "/") {
    event.preventDefault();
    if (opened) location.hash = list.address();
    list.search.focus();
  } else if (step && opened) {
    const next = opened.neighbours[step === 1 ? 1 : 0];
    if (next) location.hash = episodeLink(next.id);
  } else if (step) {
    const links = [...list.rows.querySelectorAll("td:first-child a")];
    const at = links.indexOf(document.activeElement);
    const link = links[at < 0 ? 0 : at + step];
    if (link) { link.focus(); link.scrollIntoView({ block: "nearest" }); }
  }
}

async function start() {
  document.querySelectorAll("table.sortable").forEach(sortable);
  document.addEventListener("click", (event) => { if (event.target.dataset.copy) copy(event.target); });
  blocks = [...document.querySelectorAll("script[data-count]")].filter((block) => +block.dataset.count);
  if (!window.DecompressionStream) {
    byId("list").append(h("p", {}, "This browser cannot unpack the list (it has no DecompressionStream)."));
    return;
  }
  const index = await unpack(byId("index"));
  Object.assign(words, index.words);
  derive(index);
  list = new List(index, byId("list"));
  list.draw();
  document.addEventListener("keydown", key);
  addEventListener("hashchange", follow);
  await follow();
  document.body.dataset.ready = "yes";
}

start();
