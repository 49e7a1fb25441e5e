document.addEventListener("DOMContentLoaded", () => {
  // What the search quotes of a page begins with its text, not with the menus above it.
  if (typeof Search !== "undefined") {
    const plain = Search.htmlToText;
    Search.htmlToText = (html, anchor) => {
      const page = new DOMParser().parseFromString(html, "text/html");
      for (const menu of page.querySelectorAll(".bd-header-article, .prev-next-footer, .bd-sidebar-secondary")) menu.remove();
      return plain(page.documentElement.outerHTML, anchor);
    };
  }
  // A picture that scrolls on a phone is within reach of a keyboard.
  for (const box of document.querySelectorAll("article p:has(> img)")) box.tabIndex = 0;
  // Names for controls that the theme leaves without one, for screen readers.
  for (const summary of document.querySelectorAll("nav details > summary:not([aria-label])")) {
    const title = summary.closest("li")?.querySelector("a")?.textContent.trim() ?? "this part";
    summary.setAttribute("aria-label", `Show the pages of ${title}`);
  }
  for (const button of document.querySelectorAll(".search-button__button")) {
    if (button.innerText.trim()) button.removeAttribute("aria-label");  // it says "Search" itself
  }
});
