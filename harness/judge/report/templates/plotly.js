// plotly.js (MIT licence; its notice stands at the head of what is packed), for a page that works from a folder, where a
// script cannot fetch another file. Resolves when it is unpacked and has run.
"use strict";

const plotly = (async () => {
  const bytes = Uint8Array.from(atob("GZIPPED"), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(unpacked).text();
  document.head.append(script);
})();
