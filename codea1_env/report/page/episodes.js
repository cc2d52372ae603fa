// The browser of episodes. What players wrote is hostile: it is only ever put in as text (textContent), never as HTML.
"use strict";
(() => {
  const { texts, tests, episodes, runs } = JSON.parse(document.getElementById("data").textContent);
  if (!document.getElementById("episodes")) return;
  const PAGE = 100;
  const form = document.getElementById("filters"), list = document.getElementById("list");
  const lower = texts.map((text) => text.toLowerCase());
  let found = episodes, first = 0;

  // An element with its class and its children, which are elements or texts.
  function make(tag, kind, ...children) {
    const element = document.createElement(tag);
    if (kind) element.className = kind;
    element.append(...children.map((each) => (each instanceof Node ? each : document.createTextNode(String(each)))));
    return element;
  }
  const card = (title, ...children) => make("div", "card", make("h3", "", title), ...children);
  const shown = (number) => (number === null || number === undefined ? "-" : number.toFixed(3));
  const tone = { coder: "good", tester: "bad", nobody: "warn", right: "good", wrong: "bad" };
  const unit = (episode) => (runs[episode.run].kind ? "sample" : "step");  // of an evaluation, or of a run

  function textsOf(episode) {
    const rows = [...episode.history, ...(episode.tests || []), ...episode.suites.flatMap((suite) => suite.tests)].map((number) => tests[number]);
    const answers = [episode.answer, ...episode.suites.map((suite) => suite.answer)];
    return [episode.task, episode.problem, episode.code, episode.message, ...answers, ...rows.flatMap((row) => [row[0], row[3]])];
  }

  function matches(episode, wanted, hits) {
    return (wanted.run === "" || episode.run === Number(wanted.run))
      && (wanted.task === "" || episode.task === Number(wanted.task))
      && (wanted.from === "" || episode.step >= Number(wanted.from))
      && (wanted.to === "" || episode.step <= Number(wanted.to))
      && (wanted.winner === "" || episode.winner === wanted.winner)
      && (wanted.outcome === "" || episode.outcome === wanted.outcome)
      && (hits === null || textsOf(episode).some((number) => hits.has(number)));
  }

  function search() {
    const wanted = Object.fromEntries(new FormData(form)), words = wanted.search.toLowerCase();
    const hits = words ? new Set([...lower.keys()].filter((number) => lower[number].includes(words))) : null;
    found = episodes.filter((episode) => matches(episode, wanted, hits));
    first = 0;
    showList();
    show(found[0]);
  }

  function showList() {
    const page = found.slice(first, first + PAGE);
    list.replaceChildren(...page.map((episode) => {
      const badge = make("span", `badge ${tone[episode.winner]}`, episode.winner);
      const about = `${unit(episode)} ${episode.step} · ${episode.outcome}` + (runs.length > 1 ? ` · ${runs[episode.run].name}` : "");
      const button = make("button", "", texts[episode.task], " ", badge, make("small", "", about));
      button.type = "button";
      button.addEventListener("click", () => show(episode, button));
      return make("li", "", button);
    }));
    list.scrollTop = 0;
    const range = page.length ? `${first + 1} to ${first + page.length} of ` : "";
    document.getElementById("count").textContent = `${range}${found.length} ${runs.every((run) => run.kind) ? "answers" : "episodes"}`;
    document.getElementById("before").disabled = first === 0;
    document.getElementById("after").disabled = first + PAGE >= found.length;
  }

  function verdict([, status, outcome]) {
    const name = (outcome || status).replaceAll("_", " ");
    const kind = !["kept", "corrected"].includes(status) || !outcome ? "warn" : outcome === "pass" ? "good" : "bad";
    return make("span", `badge ${kind}`, kind === "warn" ? status : name);
  }

  // Which literals of a test's call the program's text has, behind its docstring: what the tester may have read.
  const literal = /"[^"\n]+"|'[^'\n]+'|(?<![\w.])\d+(?:\.\d+)?(?![\w.])/g;

  function named(test, code) {
    const lines = code.replace(/("""|\'\'\')[\s\S]*?\1/g, (text) => text.replace(/[^\n]/g, " ")).split("\n");
    const call = test.replace(/ == [\s\S]*$/, "").replace(/^[^(]*/, "");
    const found = [...new Set(call.match(literal) || [])].flatMap((value) => {
      const line = lines.findIndex((text) => (text.match(literal) || []).includes(value));
      if (line < 0) return [];
      const branch = /^\s*(if|elif|while)\b| if /.test(lines[line]) ? ", a branch" : "";
      return [`${value.slice(0, 40)} (line ${line + 1}${branch})`];
    });
    return found.join(", ");
  }

  function table(numbers, code = "") {
    if (!numbers.length) return make("p", "dim", "No tests.");
    const rows = numbers.map((number) => tests[number]).map((test) => {
      const words = named(texts[test[0]], code);
      const read = words ? [make("div", "dim", `names ${words}`)] : [];
      const reason = test[3] === null ? "" : (test[1] === "corrected" ? "corrected: " : "") + texts[test[3]];
      return make("tr", "", make("td", "", verdict(test)), make("td", "long", make("code", "", texts[test[0]]), ...read), make("td", reason.length > 60 ? "long" : "", reason));
    });
    const head = make("tr", "", ...["Verdict", "Test", "Why not as written"].map((name) => make("th", "", name)));
    return make("div", "scroll", make("table", "", make("thead", "", head), make("tbody", "", ...rows)));
  }

  // How the rewards come about: docs/environment.md has the formulas.
  function counts(episode, suite) {
    const attacks = suite.tests.map((number) => tests[number]).filter((test) => ["kept", "corrected"].includes(test[1]));
    const old = episode.history.map((number) => tests[number]);
    const passed = (rows) => rows.filter((test) => test[2] === "pass").length;
    return { attacks, kept: attacks.length, passed: passed(attacks), old: old.length, oldPassed: passed(old) };
  }

  function suiteReward(episode, suite) {
    const { alpha, tests: size, rewards } = runs[episode.run];
    const is = `${shown(suite.reward)}: validity ${shown(suite.validity)}, adversarial ${shown(suite.adversarial)}`;
    if (rewards !== "code-a1") return `${is}; paid by ${rewards}`;
    const { attacks, kept, old, oldPassed } = counts(episode, suite);
    const failed = attacks.slice(0, size).filter((test) => test[2] !== "pass").length;
    // Older logs do not say how many are invalid: of what could not be read, they have only the whole answer.
    const invalid = suite.invalid === null ? "invalid" : `${suite.invalid} invalid`;
    const validity = `validity = min(${kept} kept / ${size}, 1 - ${invalid} / ${size}), from 0 to 1 = ${shown(suite.validity)}`;
    const adversarial = !kept ? "adversarial = 0, no test counts"
      : old ? `adversarial = (${failed} failed / ${size} - ${old - oldPassed} failed / ${old} replayed + 1) / 2 = ${shown(suite.adversarial)}`
        : `adversarial = ${failed} failed / ${size} = ${shown(suite.adversarial)}`;
    if (!episode.executes) return `${shown(suite.reward)}: the program does not run, which pays a suite nothing. ${validity}; ${adversarial}`;
    const sum = alpha * suite.validity + (1 - alpha) * suite.adversarial;
    const odd = sum - suite.reward > 0.0005 ? ` - ${shown(sum - suite.reward)} for characters that do not print` : "";
    return `${alpha} × ${shown(suite.validity)} + ${shown(1 - alpha)} × ${shown(suite.adversarial)}${odd} = ${shown(suite.reward)}; ${validity}; ${adversarial}`;
  }

  function programReward(episode) {
    const { rewards } = runs[episode.run];
    if (rewards !== "code-a1") return `${shown(episode.reward)}, paid by ${rewards}`;
    const each = episode.suites.map((suite) => {
      const { kept, passed, old, oldPassed } = counts(episode, suite);
      const shares = [...(kept ? [`${passed}/${kept}`] : []), ...(old ? [`${oldPassed}/${old}`] : [])];
      return shares.length > 1 ? `(${shares.join(" + ")}) / 2` : shares[0] || "not scored";
    });
    return `${shown(episode.reward)} = mean over suites of the shares of new and of replayed tests that pass: ${each.join("; ")}`;
  }

  function folded(title, number, language) {
    const box = make("details", "", make("summary", "", title), make("pre", language, texts[number]));
    return box;
  }

  function show(episode, button) {
    for (const each of list.querySelectorAll("[aria-current]")) each.removeAttribute("aria-current");
    const row = button || list.querySelector("button");
    if (row) row.setAttribute("aria-current", "true");
    const place = document.getElementById("episode");
    if (!episode) return place.replaceChildren(make("p", "card dim", "No episode fits. Change the filters."));
    if (runs[episode.run].kind) return showAnswer(episode, place);
    const badge = make("span", `badge ${tone[episode.winner]}`, `${episode.outcome} · ${episode.winner} wins`);
    const about = `Run ${runs[episode.run].name}, step ${episode.step}, program ${episode.program ?? "-"} of its group. `;
    const program = [make("pre", "", texts[episode.code])];
    if (episode.last) program.push(folded(`Difference to the program of step ${episode.last.step}`, episode.last.diff));
    if (episode.answer !== undefined) program.push(folded("The whole answer", episode.answer));
    place.replaceChildren(
      card(texts[episode.task], make("p", "dim", about, badge), make("pre", "", texts[episode.problem])),
      card("Program", make("p", "dim", `Reward ${programReward(episode)}`), ...program),
      ...(episode.history.length ? [card("Tests from the Mistake Book", table(episode.history))] : []),
      ...episode.suites.map((suite, number) => card(
        `Suite ${number + 1}`,
        make("p", "dim", `Reward ${suiteReward(episode, suite)}`),
        table(suite.tests, texts[episode.code]),
        ...(suite.answer === undefined ? [] : [folded("The whole answer", suite.answer)]),
      )),
    );
  }

  // An answer of an evaluation: a program with its verdict, or a suite of tests.
  function showAnswer(answer, place) {
    const badge = make("span", `badge ${tone[answer.winner]}`, answer.outcome);
    const about = `${runs[answer.run].name}, sample ${answer.step}. `;
    const cards = [card(texts[answer.task], make("p", "dim", about, badge), ...(answer.message === undefined ? [] : [make("p", "", texts[answer.message])]))];
    if (answer.code !== undefined) cards.push(card("Program", make("pre", "", texts[answer.code])));
    if (answer.tests) cards.push(card("Tests", table(answer.tests), folded("The whole answer", answer.answer)));
    place.replaceChildren(...cards);
  }

  function options(name, values) {
    for (const [value, text] of values) {
      const option = make("option", "", text);
      option.value = value;
      form.elements[name].append(option);
    }
  }
  const distinct = (name) => [...new Set(episodes.map((episode) => episode[name]))].sort();
  options("run", runs.map((run, number) => [number, run.name]));
  options("task", distinct("task").map((number) => [number, texts[number]]).sort((a, b) => a[1].localeCompare(b[1])));
  for (const name of ["winner", "outcome"]) options(name, distinct(name).map((value) => [value, value]));

  form.addEventListener("input", search);
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const [id, move] of [["before", -PAGE], ["after", PAGE]]) {
    document.getElementById(id).addEventListener("click", () => {
      first += move;
      showList();
      show(found[first]);
    });
  }
  list.addEventListener("keydown", (event) => {
    const buttons = [...list.querySelectorAll("button")], at = buttons.indexOf(document.activeElement);
    const move = { ArrowDown: 1, ArrowUp: -1, Home: -at, End: buttons.length - 1 - at }[event.key];
    const next = move === undefined ? undefined : buttons[at + move];
    if (!next) return;
    event.preventDefault();
    next.focus();
    next.click();
  });
  search();
})();
