// Draws each figure of the page when it comes into view, from the JSON before its element: data and layout of plotly.
// Of points over a history's commits, x is a commit's place; the page has the names of the commits once.
"use strict";

const LETTER_PX = 7; // of a tick's text
const NARROW_PX = 600; // with less, names beside marks would leave the figure: a tap tells them
const MARGIN_PX = { l: 56, r: 24, t: 16, b: 40 };
const CLEAR = { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest" };
const commits = JSON.parse(document.getElementById("commits")?.textContent ?? "{}");

function figureOf(element) {
  const { data, layout } = JSON.parse(element.previousElementSibling.textContent);
  const known = commits[layout.meta?.commits];
  if (known) {
    layout.xaxis.categoryarray = known.map(([name]) => name);
    for (const trace of data) {
      trace.customdata = trace.x.map((place) => known[place][1]);
      trace.x = trace.x.map((place) => known[place][0]);
    }
  }
  const back = getComputedStyle(document.body).backgroundColor; // no line of the grid runs through a name
  for (const annotation of layout.annotations ?? []) annotation.bgcolor ??= back;
  if (element.clientWidth < NARROW_PX) for (const trace of data) trace.mode = trace.mode.replace("+text", "");
  const dragmode = matchMedia("(pointer: coarse)").matches ? false : "zoom"; // a finger scrolls the page
  return { data, layout: { ...CLEAR, margin: MARGIN_PX, dragmode, ...layout }, config: { displayModeBar: false } };
}

// The element's size now, and as many names of commits as there is room for.
function fit(element, { data, layout }) {
  const room = { width: element.clientWidth, height: element.clientHeight };
  if (layout.xaxis.type !== "category") return room;
  const names = layout.xaxis.categoryarray ?? data.flatMap(({ x }) => x);
  const letters = Math.max(...names.map((name) => Math.max(...name.split("<br>").map((line) => line.length))));
  const inner = room.width - layout.margin.l - layout.margin.r;
  return { ...room, "xaxis.nticks": Math.max(1, Math.floor(inner / (LETTER_PX * (letters + 1)))) };
}

async function draw(element) {
  if (element.layout) return;
  const { data, layout, config } = figureOf(element);
  const { width, height, "xaxis.nticks": nticks } = fit(element, { data, layout });
  Object.assign(layout, { width, height, xaxis: { ...layout.xaxis, nticks } });
  await Plotly.newPlot(element, data, layout, config);
  element.on("plotly_clickannotation", ({ index }) => { // the name of a series hides its line, and shows it again
    const mine = [...element.data.keys()].filter((place) => element.data[place].legendgroup === String(index));
    const visible = element.data[mine[0]].visible === false;
    Plotly.update(element, { visible }, { [`annotations[${index}].opacity`]: visible ? 1 : 0.4 }, mine);
  });
  resized.observe(element);
}

const resized = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.clientWidth !== target.layout.width) Plotly.relayout(target, fit(target, target));
  }
});
const seen = new IntersectionObserver((entries) => {
  for (const { target } of entries.filter((entry) => entry.isIntersecting)) {
    seen.unobserve(target);
    setTimeout(() => draw(target)); // one after the other: the first is seen while the next is drawn
  }
}, { rootMargin: "200px" });
const places = document.querySelectorAll(".figure");
plotly.then(
  () => {
    places.forEach((element) => seen.observe(element));
    addEventListener("beforeprint", () => places.forEach(draw)); // paper has no view to come into
  },
  (error) => places.forEach((element) => element.append(`This browser cannot draw (${error.message}).`)),
);
