// Draws the two charts of a case's kernels: its operators over commits, and its newest ones below the device's roofline.
"use strict";

const { times, roofline } = JSON.parse(document.getElementById("kernels").textContent);
const QUIET = "#7a7a7a";
const LARGEST_PX = 40; // of a mark, if one operator took all the time
const NAMED = 3;
const TICK_PX = 70;
const COMMON = { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest" };

function drawTimes(element) {
  const { commits, lines } = times;
  const every = Math.max(1, Math.ceil((commits.length * TICK_PX) / element.clientWidth));
  const shown = [...commits.keys()].filter((place) => (commits.length - 1 - place) % every === 0);
  const traces = lines.map(({ name, ms, colour, dash }) => ({
    name, y: ms, x: [...commits.keys()], mode: "lines+markers", line: { color: colour, dash },
    text: commits.map(([, told], place) => `${name}<br>${told}<br>${ms[place]} ms`), hovertemplate: "%{text}<extra></extra>",
  }));
  Plotly.react(element, traces, {
    ...COMMON, width: element.clientWidth, height: element.clientHeight, margin: { l: 48, r: 16, t: 16, b: 8 },
    legend: { orientation: "h", y: -0.15 }, showlegend: true,
    xaxis: { tickvals: shown, ticktext: shown.map((place) => commits[place][0]), zeroline: false },
    yaxis: { rangemode: "tozero", title: { text: "ms" }, fixedrange: true },
  }, { displayModeBar: false });
}

function drawRoofline(element) {
  const column = (place) => roofline.points.map((point) => point[place]);
  const text = roofline.points.map(([name], place) => (place < NAMED ? name : ""));
  const told = roofline.points.map(([name, , rate, share]) => `${name}<br>${rate} GFLOP/s<br>${(100 * share).toFixed(1)} % of the time`);
  const marks = {
    x: column(1), y: column(2), text, mode: "markers+text", textposition: "top center", textfont: { size: 10 }, cliponaxis: false,
    hovertext: told, hovertemplate: "%{hovertext}<extra></extra>",
    marker: { color: "#0072b2", opacity: 0.6, size: column(3).map((share) => Math.max(6, LARGEST_PX * Math.sqrt(share))) },
  };
  const roof = {
    x: roofline.roof.map(([x]) => x), y: roofline.roof.map(([, y]) => y), mode: "lines", line: { color: QUIET, width: 2 },
    hoverinfo: "skip",
  };
  Plotly.react(element, [roof, marks], {
    ...COMMON, width: element.clientWidth, height: element.clientHeight, margin: { l: 56, r: 16, t: 16, b: 44 }, showlegend: false,
    xaxis: { type: "log", title: { text: "operations for each byte" } },
    yaxis: { type: "log", title: { text: "GFLOP/s" }, fixedrange: true },
  }, { displayModeBar: false });
}

const DRAWINGS = { times: drawTimes, roofline: drawRoofline };
const places = Object.keys(DRAWINGS).map((id) => document.getElementById(id)).filter(Boolean);
const resized = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.clientWidth === target.drawn_px) continue;
    target.drawn_px = target.clientWidth;
    DRAWINGS[target.id](target);
  }
});
plotly.then(
  () => places.forEach((element) => resized.observe(element)),
  (error) => places.forEach((element) => element.append(`This browser cannot draw (${error.message}); the tables have the numbers.`)),
);
