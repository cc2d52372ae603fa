// Draws the charts when they come into view, in the colours of the page, and sorts tables by a click on a heading.
"use strict";
(() => {
  const specs = JSON.parse(document.getElementById("specs").textContent);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function draw(place) {
    const ink = colour("--ink"), dim = colour("--dim"), line = colour("--line");
    const config = {
      background: "transparent",
      font: "system-ui, sans-serif",
      view: { stroke: null },
      axis: { labelColor: dim, titleColor: dim, gridColor: line, domainColor: line, tickColor: line, labelLimit: 140 },
      legend: { labelColor: ink, titleColor: dim, orient: "bottom", columns: 2, labelLimit: 160, symbolOpacity: 1 },
    };
    // ast: expressions are interpreted, so that the page needs no leave to evaluate text.
    vegaEmbed(place, specs[Number(place.dataset.chart)], { actions: false, renderer: "svg", ast: true, config });
  }

  const drawn = new Set();
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((each) => each.isIntersecting && !drawn.has(each.target))) {
      drawn.add(entry.target);
      draw(entry.target);
    }
  }, { rootMargin: "600px" });
  document.querySelectorAll("[data-chart]").forEach((place) => watcher.observe(place));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.forEach(draw));

  function sort(heading) {
    const column = heading.cellIndex, table = heading.closest("table");
    const down = heading.getAttribute("aria-sort") !== "descending";
    for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => {
      const cell = row.cells[column];
      return cell.dataset.order === undefined ? cell.textContent : Number(cell.dataset.order.replace("inf", "Infinity"));
    };
    const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
    const rows = [...table.tBodies[0].rows].sort((a, b) => (down ? -1 : 1) * order(key(a), key(b)));
    table.tBodies[0].append(...rows);
  }
  for (const button of document.querySelectorAll("th button")) button.addEventListener("click", () => sort(button.parentNode));
})();
