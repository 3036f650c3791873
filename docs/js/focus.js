// What scrolls sideways can be reached and scrolled with the keyboard.

const SCROLLING = ".md-typeset pre > code, .md-typeset__scrollwrap, .landscape, .formula";

function letScrollingBeFocused() {
  for (const region of document.querySelectorAll(SCROLLING)) {
    const scrolls = region.scrollWidth > region.clientWidth;
    if (scrolls) region.tabIndex = 0;
    else region.removeAttribute("tabindex");
  }
}

// The theme wraps tables in regions that scroll after this script has run. Sizes change with the
// window, and when what is folded is opened.
new ResizeObserver(letScrollingBeFocused).observe(document.body);
window.addEventListener("load", letScrollingBeFocused);
