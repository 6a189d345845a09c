// Hides the rows of the front page that lack one of the words typed into its filter.
"use strict";

const typed = document.getElementById("filter");
typed.hidden = false;
typed.addEventListener("input", () => {
  const words = typed.value.toLowerCase().split(/\s+/);
  for (const row of document.querySelectorAll("tbody tr")) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
});
