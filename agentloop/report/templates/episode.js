// One episode: per round the verdicts, the counterexample, what changed, the source, the prompt and the answer.

const ROWS = 64; // elements of an output shown at first

/** The page of an episode. `details` is null where the page holds none. */
function episodeView(episode, details, texts, neighbours, back) {
  const go = (other, text) => (other ? h("a", { href: episodeLink(other.id) }, text) : h("span", { class: "muted" }, text));
  const about = [["model", episode.model], ["strategy", episode.strategy], ["feedback", episode.feedback], ["sample", episode.sample]];
  return h("div", {},
    h("div", { class: "bar-line" }, h("a", { href: back }, "← all episodes"), go(neighbours[0], "previous"), go(neighbours[1], "next")),
    h("h1", { tabindex: "-1" }, episode.task, label(episode.author)),
    h("p", { class: "muted" }, about.map(([name, value]) => `${name} ${value}`).join(" · ")),
    h("p", {}, `${episode.outcome[0].toUpperCase()}${episode.outcome.slice(1)}: `,
      episode.rounds.map((round, at) => [at ? " → " : "", chip(episode.stated[at], `round ${round.round}`)]).flat()),
    details ? details.map((detail, at) => roundView(episode, details, at, texts))
      : h("p", {}, "This page has no room for the details of this episode: ", h("code", {}, `agentloop show ${document.body.dataset.run} ${episode.id}`)),
  );
}

function roundView(episode, details, at, texts) {
  const detail = details[at], round = episode.rounds[at], status = episode.stated[at];
  const id = `round-${round.round}`;
  const before = at ? texts[details[at - 1].source] : null, source = texts[detail.source];
  const failure = detail.score && detail.score.failure;
  const fold = (title, open, ...content) => h("details", { open }, h("summary", {}, title), content);
  return h("section", { class: "round", id },
    h("h2", {}, `Round ${round.round} `, chip(status, `${status} over the stated tiers`), chip(STATUS[round.status], `${STATUS[round.status]} over the ${detail.domain} domain`), " ",
      h("a", { class: "here", href: `${episodeLink(episode.id)}/${round.round}`, "aria-label": "link to this round" }, "#")),
    failure ? failureView(failure) : status === "pass" ? h("p", {}, `Right on all ${detail.score ? detail.score.cases_run : 0} cases of the score stream.`) : null,
    detail.facts.fault ? h("p", {}, `Infrastructure: ${detail.facts.fault}`) : null,
    detail.example ? fold("Counterexample", true, counterexampleView(detail.example, detail.replay)) : null,
    before !== null ? fold("What changed since the round before", true, before === source ? h("p", {}, "Nothing: the same source.") : differenceView(before, source)) : null,
    source ? fold(`Source (${source.trimEnd().split("\n").length} lines)`, at === 0, painted(source, blamedLines(failure ? `${failure.message} ${failure.detail || ""}` : ""))) : h("p", {}, "No source: no code was found in the answer."),
    fold("Verdicts", false, verdictTables(detail)),
    fold(at ? "Prompt, with the feedback" : "Prompt", false, detail.messages.map(([role, text], place) => [h("h3", {}, role), h("pre", {}, texts[text])]).flat()),
    fold("Answer", false, h("pre", {}, texts[detail.answer])),
    fold("Record", false, facts(detail.facts), detail.score && detail.score.notes.length ? h("p", {}, `Notes: ${detail.score.notes.join("; ")}`) : null),
  );
}

function failureView(failure) {
  return h("div", {}, h("p", {}, h("b", {}, failure.kind), " in tier ", h("b", {}, failure.tier), failure.loud ? " (loud): " : " (silent): ", failure.message),
    h("p", { class: "muted" }, words.kinds[failure.kind], ` Tier ${failure.tier}: ${words.tiers[failure.tier]}.`),
    failure.detail ? h("pre", {}, failure.detail) : null);
}

function verdictTables(detail) {
  const row = (name, status, text) => h("tr", {}, h("td", { class: "text" }, name), h("td", {}, status ? chip(status) : "–"), h("td", { class: "text" }, text));
  const stream = (title, verdict) => (verdict ? h("table", { class: "figures" }, h("caption", {}, title),
    h("tbody", {}, Object.entries(verdict.tiers).map(([tier, status]) => {
      const failure = verdict.failures[tier];
      const beyond = detail.stated.includes(tier) ? "" : " (beyond the prompt)";
      return row(tier + beyond, status, failure ? `${failure.kind}: ${failure.message}` : "");
    }))) : null);
  return [
    stream("Oracle, the cases that score", detail.score),
    stream("Oracle, the cases that feedback is drawn from", detail.told),
    h("table", { class: "figures" }, h("caption", {}, "Naive checks"),
      h("tbody", {}, Object.entries(detail.naive).map(([profile, result]) => row(profile, result.status, result.reason)))),
  ].map((table) => (table ? h("div", { class: "wide" }, table) : null));
}

function facts(values) {
  const plain = (value) => (typeof value === "object" ? JSON.stringify(value) : String(value));
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== "");
  return h("dl", {}, given.map(([name, value]) => [h("dt", {}, name), h("dd", {}, plain(value))]).flat());
}

function counterexampleView(example, replay) {
  const found = example.original && (example.original.case || example.original);
  return [
    example.diagnosis ? h("p", {}, h("b", {}, "Pattern: "), example.diagnosis) : null,
    h("p", {}, caseWords(example.case || {})),
    found ? h("p", { class: "muted" }, `Found as: ${caseWords(found)}. Shrunk by ${example.executions} executions.`) : null,
    Object.entries(example.inputs || {}).map(([name, array]) => h("p", {}, h("code", {}, `${name} = ${arrayText(array)}`))),
    outputTables(example.got, example.expected),
    errorWords(example.stats || {}),
    replay ? [h("p", {}, "Run it again, in a fresh process:"), command(replay)] : null,
  ];
}

/** A case in words. Its values, if it holds any, are told as inputs; the rest of it is in the replay's token. */
function caseWords(drawn) {
  const kept = ["tier", "form", "dims", "dtype", "layout", "regime", "keywords"].filter((name) => drawn[name] !== undefined);
  const pairs = (value) => Object.entries(value).map(([name, item]) => `${name}=${JSON.stringify(item)}`).join(", ") || "none";
  return kept.map((name) => `${name} ${typeof drawn[name] === "object" ? pairs(drawn[name]) : drawn[name]}`).join(" · ");
}

function errorWords(stats) {
  const number = (value) => (typeof value === "number" ? Number(value.toPrecision(3)) : value);
  const kept = ["count", "exceeding", "max_abs", "mean_abs", "max_rel", "max_ulp", "max_ratio"].filter((name) => stats[name] !== undefined && stats[name] !== null);
  return kept.length ? h("p", { class: "muted" }, kept.map((name) => `${name.replace("_", " ")} ${number(stats[name])}`).join(" · ")) : null;
}

/** "float32 (2, 3) [[1, 2, 3], [4, 5, 6]]"; an array too large to show by its shape alone. */
function arrayText(array) {
  const shape = `${array.dtype} (${array.shape.join(", ")}${array.shape.length === 1 ? "," : ""})`;
  const constant = array.constant ?? null;
  if (!array.values && constant !== null) return `${shape} every element ${constant}`;
  return array.values ? `${shape} ${nested(array.values, array.shape)}` : `${shape} …`;
}

function nested(values, shape) {
  if (!shape.length) return String(values[0]);
  const step = values.length / shape[0] || 1;
  const rows = Array.from({ length: shape[0] }, (_, at) => nested(values.slice(at * step, (at + 1) * step), shape.slice(1)));
  return `[${rows.join(", ")}]`;
}

/** Got and expected side by side: every element of a small output, else the worst ones. */
function outputTables(got, expected) {
  const known = expected || [];
  return known.map((want, output) => {
    const have = (got || [])[output];
    const title = `${known.length > 1 ? `output ${output}: ` : ""}expected ${want.dtype} (${want.shape.join(", ")})`
      + (have ? `, got ${have.dtype} (${have.shape.join(", ")})` : ", got nothing");
    const rows = elements(have, want);
    const row = ([index, mine, right, worst]) => h("tr", { class: worst ? "worst" : null },
      h("td", {}, `[${index.join(", ")}]`), h("td", {}, mine), h("td", {}, right));
    const body = h("tbody", {}, rows.slice(0, ROWS).map(row));
    const heads = ["element", "got", "expected"].map((text) => h("th", {}, text));
    return rows.length ? h("div", { class: "wide" }, h("table", { class: "values" }, h("caption", {}, title), h("thead", {}, h("tr", {}, heads)), body)) : h("p", {}, title);
  });
}

function elements(have, want) {
  const text = (value) => (value === undefined || value === null ? "–" : String(value));
  const worst = new Map((want.worst || []).map((item) => [String(item.index), item.expected]));
  const wrong = new Map(((have && have.worst) || []).map((item) => [String(item.index), item.got]));
  if (!want.values) {
    return [...new Set([...wrong.keys(), ...worst.keys()])].map((key) => [key.split(","), text(wrong.get(key)), text(worst.get(key)), true]);
  }
  const mine = (have && have.values) || [];
  return want.values.map((right, at) => {
    const index = position(at, want.shape), key = String(index);
    return [index, text(mine.length ? mine[at] : wrong.get(key)), text(right), worst.has(key) || wrong.has(key)];
  });
}

/** The index of flat place `at` in an array of this shape, row-major. */
function position(at, shape) {
  const index = [];
  for (const size of [...shape].reverse()) { index.unshift(at % size); at = Math.floor(at / size); }
  return index;
}
