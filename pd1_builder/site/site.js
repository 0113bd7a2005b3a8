"use strict";
for (const button of document.querySelectorAll("button.copy")) {
  const source = button.closest(".copyable").querySelector("code");
  const label = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      // Without encryption a page has no clipboard, but what is selected can be copied, by itself or by hand.
      getSelection().selectAllChildren(source);
      button.textContent = document.execCommand("copy") ? "Copied" : "Selected";
    }
    setTimeout(() => { button.textContent = label; }, 2000);
  });
}
