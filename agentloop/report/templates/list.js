// The list of episodes: filters that live in the address, sorting, and as many rows as are looked at.

const PAGE = 100; // rows drawn at first, and by each press of "more"
const OUTCOMES = ["solved at first", "repaired", "not solved", "broken again", "unjudged"];
const COLUMNS = {
  task: "task", model: "model", strategy: "strategy", feedback: "feedback", sample: "sample",
  outcome: "outcome", rounds: "rounds", kind: "first failure", illusions: "illusions",
};
const CHOICES = { task: "task", model: "model", strategy: "strategy", feedback: "feedback", outcome: "outcome", kind: "first failure" };

/** Adds to each episode of the index what is derived from its rounds. */
function derive(index) {
  for (const episode of index.episodes) {
    const stated = episode.rounds.map((round) => STATUS[round.over.stated]);
    const last = stated[stated.length - 1];
    episode.stated = stated;
    episode.outcome = last === "unjudged" ? "unjudged"
      : last === "pass" ? (stated[0] === "pass" ? "solved at first" : "repaired")
        : stated.includes("pass") ? "broken again" : "not solved";
    const first = episode.rounds[0];
    episode.kind = first.kind;
    episode.illusions = index.profiles.filter((_, at) => first.naive[at] === "p" && first.over.stated === "f");
    episode.text = `${episode.id} ${episode.rounds.map((round) => `${round.kind} ${round.tier}`).join(" ")}`.toLowerCase();
  }
}

class List {
  constructor(index, place) {
    this.index = index;
    this.state = {};
    this.shown = PAGE;
    this.rows = h("tbody", {});
    this.count = h("p", { class: "muted", "aria-live": "polite" });
    this.more = h("button", { type: "button", onclick: () => { this.shown += 5 * PAGE; this.draw(); } }, "show more");
    const values = (key) => new Set(index.episodes.map((episode) => episode[key]));
    this.columns = Object.keys(COLUMNS).filter((key) => !["model", "strategy", "feedback", "sample"].includes(key) || values(key).size > 1);
    this.heads = this.columns.map((key) => h("th", { scope: "col" }, h("button", { type: "button", onclick: () => this.sortBy(key) }, COLUMNS[key])));
    place.append(this.filters(values), this.count,
      h("table", { class: "list" }, h("thead", {}, h("tr", {}, this.heads)), this.rows), this.more);
  }

  filters(values) {
    this.search = h("input", { type: "search", placeholder: "any part of an id, a kind, a tier", oninput: () => this.set("search", this.search.value) });
    this.selects = {};
    const select = (key, title, options) => {
      this.selects[key] = h("select", { onchange: (event) => this.set(key, event.target.value) },
        h("option", { value: "" }, "all"), options.map((value) => h("option", { value }, value)));
      return h("label", {}, title, this.selects[key]);
    };
    const choices = Object.entries(CHOICES).map(([key, title]) => {
      const known = [...values(key)].filter(Boolean);
      const options = key === "outcome" ? OUTCOMES.filter((value) => known.includes(value)) : known.sort(compare);
      return options.length > 1 || key === "kind" ? select(key, title, options) : null;
    });
    const profile = select("illusion", "illusion under", this.index.profiles);
    this.cell = h("span", {});
    return h("div", { class: "filters", role: "search" }, h("label", {}, "search", this.search), choices, profile, this.cell,
      h("button", { type: "button", onclick: () => this.show({}) }, "clear"));
  }

  /** Takes a state (search, filters, sort, down) and draws it. */
  show(state) {
    this.state = Object.fromEntries(Object.entries(state).filter(([, value]) => value));
    this.shown = PAGE;
    if (this.search.value !== (this.state.search || "")) this.search.value = this.state.search || "";
    for (const [key, select] of Object.entries(this.selects)) select.value = this.state[key] || "";
    const { profile, cell, set } = this.state;
    this.cell.replaceChildren(...(cell ? [h("button", { type: "button", onclick: () => this.show({ ...this.state, profile: "", cell: "", set: "" }) },
      `${profile} ${STATUS[cell[0]]}, oracle ${STATUS[cell[1]]} over ${set}, round 0 ×`)] : []));
    this.draw();
    history.replaceState(history.state, "", this.address());
  }

  set(key, value) { this.show({ ...this.state, [key]: value }); }

  sortBy(key) {
    const { sort = "task", down } = this.state;
    this.show({ ...this.state, sort: key, down: sort === key && !down ? "1" : "" });
  }

  address() {
    const query = new URLSearchParams(this.state).toString();
    return `#/episodes${query ? `?${query}` : ""}`;
  }

  matches(episode) {
    const { search, illusion, profile, cell, set } = this.state;
    if (Object.keys(CHOICES).some((key) => this.state[key] && this.state[key] !== String(episode[key]))) return false;
    if (illusion && !episode.illusions.includes(illusion)) return false;
    if (cell) {
      const first = episode.rounds[0];
      if (first.naive[this.index.profiles.indexOf(profile)] !== cell[0] || first.over[set] !== cell[1]) return false;
    }
    return (search || "").toLowerCase().split(/\s+/).every((word) => episode.text.includes(word));
  }

  draw() {
    const { sort = "task", down } = this.state;
    const value = (episode) => {
      if (sort === "outcome") return OUTCOMES.indexOf(episode.outcome);
      return sort === "rounds" || sort === "illusions" ? episode[sort].length : episode[sort];
    };
    this.visible = this.index.episodes.filter((episode) => this.matches(episode));
    if (sort !== "task" || down) {
      const keyed = this.visible.map((episode) => [value(episode), episode]).sort(([a], [b]) => compare(a, b));
      this.visible = keyed.map(([, episode]) => episode);
      if (down) this.visible.reverse();
    }
    const total = this.index.episodes.length, some = this.visible.length;
    this.count.textContent = `${some} of ${total} episodes${some > this.shown ? `, the first ${this.shown} shown` : ""}`;
    this.more.hidden = some <= this.shown;
    this.heads.forEach((head, at) => {
      if (this.columns[at] === sort) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    this.rows.replaceChildren(...this.visible.slice(0, this.shown).map((episode) => this.row(episode)));
  }

  row(episode) {
    const cells = {
      task: () => [h("a", { href: episodeLink(episode.id) }, episode.task), this.columns.includes("model") ? [] : label(episode.author)].flat(),
      model: () => [episode.model, ...label(episode.author)],
      rounds: () => episode.rounds.map((round, at) => chip(episode.stated[at], round.kind && episode.stated[at] === "fail" ? round.kind : null)),
      illusions: () => (episode.illusions.length ? `${episode.illusions.length} of ${this.index.profiles.length} checks` : ""),
    };
    const open = (event) => { if (!event.target.closest("a")) location.hash = episodeLink(episode.id); };
    return h("tr", { onclick: open }, this.columns.map((key) =>
      h("td", { "data-name": COLUMNS[key] }, cells[key] ? cells[key]() : String(episode[key]))));
  }
}
