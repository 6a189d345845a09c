// Draws the charts of the page, each when it comes into view: latencies above, and below them a row for each series with
// its name, a sample of its line, and a mark for each commit, since what is not right has no latency.
"use strict";

const { states, commits, charts } = JSON.parse(document.getElementById("points").textContent);
const ROW_PX = 40;
const MARGIN_PX = { l: 48, r: 40, t: 26, b: 6 };
const TICKS_PX = 52; // between latencies and rows
const LETTER_PX = 7; // of a tick's text
const DENSE_PX = 7; // with less for each commit, marks would hide each other
const QUIET = "#7a7a7a";
const LOUD = "#c8322d";
const SHAPES = {
  r: ["circle", QUIET],
  v: ["diamond-open", QUIET],
  w: ["x", LOUD],
  b: ["square", LOUD],
  u: ["circle-open", QUIET],
  "?": ["diamond", QUIET],
};
const COMMON = { mode: "lines", hovertemplate: "%{text}<extra></extra>", showlegend: false };

// As many ticks as there is room for, counted from the newest commit. A reader knows a commit by the release of TVM that
// was measured there if each has another one, else by its day.
function ticks(known, from, to, width) {
  const releases = new Set(known.map(([, , tvm]) => tvm)).size === known.length;
  const text = ([hash, day, tvm]) => [releases ? tvm : day, hash];
  const letters = Math.max(...known.map((commit) => Math.max(...text(commit).map((line) => line.length))));
  const every = Math.max(1, Math.ceil(((to - from) * LETTER_PX * (letters + 1)) / width));
  const [first, last] = [Math.max(0, Math.ceil(from)), Math.min(known.length - 1, Math.floor(to))];
  const tickvals = [];
  for (let place = last; place >= first; place -= every) tickvals.push(place);
  return { tickvals, ticktext: tickvals.map((place) => text(known[place]).join("<br>")) };
}

function hover(one, known) {
  return one.x.map((x, i) => {
    const ms = one.ms[i] === null ? "" : `, ${one.ms[i]} ms`;
    const why = one.told[i] ? `<br>${one.told[i]}` : "";
    const [hash, day, tvm] = known[x];
    return `${hash}, ${day}${tvm && `, TVM ${tvm}`}<br>${states[one.states[i]]}${ms}${why}`;
  });
}

// Few points get a dot each. Of many, only those without a neighbour do: the browser draws a line in one go, dots one by one.
function latencies(one, text, dense, visible) {
  const timed = (i) => one.ms[i] !== null && one.ms[i] !== undefined;
  const dots = [...one.x.keys()].filter((i) => timed(i) && !(dense && (timed(i - 1) || timed(i + 1))));
  const ranges = [...one.x.keys()].filter((i) => timed(i) && one.low[i] !== null && one.high[i] !== null);
  const line = { dash: one.dash, color: one.colour, width: one.hollow ? 1 : 2 };
  const symbol = one.hollow ? "circle-open" : "circle";
  return [
    { ...COMMON, visible, x: one.x, y: one.ms, text, line },
    { ...COMMON, visible, x: ranges.flatMap((i) => [one.x[i], one.x[i], null]), y: ranges.flatMap((i) => [one.low[i], one.high[i], null]),
      line: { color: one.colour, width: 1 }, hoverinfo: "skip", hovertemplate: null },
    { ...COMMON, visible, ...at(dots, one.x, one.ms, text), mode: "markers", marker: { symbol, color: one.colour, size: dense ? 4 : 9 } },
  ];
}

// Where points are many, a line stands for what was right, and marks for the rest.
function marks(one, text, row, dense) {
  const right = (i) => one.states[i] === "r";
  const marked = [...one.x.keys()].filter((i) => !(dense && right(i) && (right(i - 1) || right(i + 1))));
  const y = one.x.map(() => row + 0.72);
  const of = (column) => marked.map((i) => SHAPES[one.states[i]][column]);
  return [
    { ...COMMON, x: one.x, y: y.map((place, i) => (dense && right(i) ? place : null)), text, yaxis: "y2", line: { color: QUIET, width: 3 } },
    { ...COMMON, ...at(marked, one.x, y, text), yaxis: "y2", mode: "markers", marker: { symbol: of(0), color: of(1), size: 10 } },
  ];
}

function at(places, x, y, text) {
  return { x: places.map((i) => x[i]), y: places.map((i) => y[i]), text: places.map((i) => text[i]) };
}

function name(one, row, hidden) {
  return {
    text: one.name, x: 0, xref: "paper", xanchor: "left", xshift: 32 - MARGIN_PX.l, y: row + 0.3, yref: "y2", yanchor: "middle",
    showarrow: false, captureevents: true, font: { size: 11 }, opacity: hidden ? 0.4 : 1,
  };
}

function sample(one, row) {
  const [x0, x1] = [4 - MARGIN_PX.l, 32 - MARGIN_PX.l];
  return {
    type: "line", xref: "paper", xsizemode: "pixel", xanchor: 0, x0, x1, yref: "y2", y0: row + 0.3, y1: row + 0.3,
    line: { dash: one.dash, color: one.colour, width: one.hollow ? 1 : 2 },
  };
}

function layout(element, known, series, hidden) {
  const inner = element.clientHeight - MARGIN_PX.t - MARGIN_PX.b;
  const rows = (ROW_PX * series.length) / inner;
  const range = [-0.02 * known.length - 0.3, 1.02 * known.length - 0.7];
  const unit = { text: "ms", x: 0, y: 1, xref: "paper", yref: "paper", xanchor: "right", yanchor: "bottom", showarrow: false };
  return {
    width: element.clientWidth, height: element.clientHeight, margin: MARGIN_PX,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", uirevision: "kept", hovermode: "closest",
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom", // a finger scrolls the page
    annotations: [...series.map((one, row) => name(one, row, hidden.has(row))), unit],
    shapes: series.map(sample),
    xaxis: { range, anchor: "y", tickangle: 0, ticks: "outside", zeroline: false, ...ticks(known, ...range, width(element)) },
    yaxis: { rangemode: "tozero", domain: [rows + TICKS_PX / inner, 1], fixedrange: true },
    yaxis2: { range: [series.length, 0], domain: [0, rows], visible: false, fixedrange: true },
  };
}

function width(element) {
  return element.clientWidth - MARGIN_PX.l - MARGIN_PX.r;
}

function draw(element) {
  const { machine, series } = charts[element.dataset.chart];
  const known = commits[machine];
  element.hidden_rows ??= new Set();
  const dense = width(element) / known.length < DENSE_PX;
  const traces = series.flatMap((one, row) => {
    const text = hover(one, known);
    return [...latencies(one, text, dense, !element.hidden_rows.has(row)), ...marks(one, text, row, dense)];
  });
  Plotly.react(element, traces, layout(element, known, series, element.hidden_rows), { displayModeBar: false });
  element.drawn_px = element.clientWidth;
}

function listen(element) {
  const known = commits[charts[element.dataset.chart].machine];
  element.on("plotly_clickannotation", ({ index }) => {
    const { hidden_rows: rows } = element;
    if (!rows.delete(index)) rows.add(index);
    draw(element);
  });
  element.on("plotly_relayout", (change) => {
    if (!Object.keys(change).some((key) => key.startsWith("xaxis.") && !key.includes("tick"))) return;
    const shown = ticks(known, ...element.layout.xaxis.range, width(element));
    Plotly.relayout(element, { "xaxis.tickvals": shown.tickvals, "xaxis.ticktext": shown.ticktext });
  });
}

const resized = new ResizeObserver((entries) => {
  for (const { target } of entries) if (target.clientWidth !== target.drawn_px) draw(target);
});
const seen = new IntersectionObserver((entries) => {
  for (const { target } of entries.filter((entry) => entry.isIntersecting)) {
    seen.unobserve(target);
    setTimeout(() => { // one after the other: the first is seen while the next is drawn
      draw(target);
      listen(target);
      resized.observe(target);
    });
  }
}, { rootMargin: "200px" });
const places = document.querySelectorAll("[data-chart]");
plotly.then(
  () => places.forEach((element) => seen.observe(element)),
  (error) => places.forEach((element) => element.append(`This browser cannot draw (${error.message}); points.csv has all points.`)),
);
