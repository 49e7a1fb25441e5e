// Names for controls that the theme leaves without one, for screen readers.
document.addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll("nav details > summary:not([aria-label])")) {
    const title = summary.closest("li")?.querySelector("a")?.textContent.trim() ?? "this part";
    summary.setAttribute("aria-label", `Show the pages of ${title}`);
  }
  for (const button of document.querySelectorAll(".search-button__button")) {
    if (button.innerText.trim()) button.removeAttribute("aria-label");  // it says "Search" itself
  }
});
