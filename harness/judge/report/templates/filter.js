// Hides what lacks one of the words typed into the filter, and what has a value whose box is not checked.
"use strict";

const typed = document.getElementById("filter");
const boxes = [...document.querySelectorAll(".toggles input")];
const texts = new Map([...document.querySelectorAll("tbody tr, article")].map((one) => [one, null]));

function apply() {
  const words = typed.value.toLowerCase().split(/\s+/);
  const off = boxes.filter((box) => !box.checked);
  for (const [element, text] of texts) {
    if (text === null) texts.set(element, (element.dataset.words ?? element.textContent).toLowerCase());
    element.hidden = !words.every((word) => texts.get(element).includes(word));
  }
  const chosen = (element) => off.every((box) => element.dataset[box.name] !== box.value);
  for (const element of document.querySelectorAll(".entry")) element.hidden = !chosen(element);
  for (const element of document.querySelectorAll("article")) element.hidden ||= !chosen(element);
  for (const row of document.querySelectorAll("tbody tr")) {
    const entries = [...row.querySelectorAll(".entry")];
    row.hidden ||= entries.length > 0 && entries.every((entry) => entry.hidden);
  }
  for (const section of document.querySelectorAll("section")) {
    section.hidden = [...section.querySelectorAll("tbody tr")].every((row) => row.hidden);
  }
}

for (const element of [typed, ...boxes]) element.addEventListener("input", apply);
for (const element of document.querySelectorAll("#filter, .toggles")) element.hidden = false;
