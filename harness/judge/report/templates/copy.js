// A button beside each command that copies it, where the browser lets pages do so.
"use strict";

for (const button of navigator.clipboard ? document.querySelectorAll("button.copy") : []) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}
