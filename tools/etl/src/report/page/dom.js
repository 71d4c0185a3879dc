// ---- Elements ----

/** Returns the element with an id. */
const byId = (id) => document.getElementById(id);

/** Creates an element. Children that are strings become text, never markup. */
function make(name, options = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === 'class') made.className = value;
    else if (key === 'on') for (const [type, handler] of Object.entries(value)) made.addEventListener(type, handler);
    else if (key === 'data') Object.assign(made.dataset, value);
    else made.setAttribute(key, value === true ? '' : String(value));
  }
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

function button(text, act, options = {}) {
  return make('button', { type: 'button', ...options, on: { click: act } }, text);
}

/** Calls `act` at most once per drawn frame. */
function perFrame(act) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      act();
    });
  };
}

/** Lets the browser draw and handle input. */
const breathe = () => new Promise((resolve) => setTimeout(resolve, 0));
