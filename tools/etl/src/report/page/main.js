// ---- Start ----

/** Shows the failure; the rest of the page stays unchanged. */
function fail(error) {
  const status = byId('status');
  status.hidden = false;
  status.className = 'notice bad';
  status.textContent = `The page failed: ${error.message ?? error}`;
  console.error(error);
}

async function start() {
  if (typeof DecompressionStream === 'undefined') throw new Error('this browser is too old: it has no DecompressionStream (Chromium 103, Firefox 113, Safari 16.4 have it)');
  await load();
  byId('main').hidden = false;
  startTheme();
  startTimeline();
  showSummary();
  showCounts();
  showSessions();
  startTable();
  startKeys();
  startPrinting();
  if (window.innerWidth < 900) byId('facets').open = false;
  let typed = 0;
  byId('search').addEventListener('input', () => {
    clearTimeout(typed);
    typed = setTimeout(() => {
      filter.query = byId('search').value.trim();
      changed('replace');
    }, 200);
  });
  byId('search-form').addEventListener('submit', (event) => {
    event.preventDefault();
    clearTimeout(typed);
    filter.query = byId('search').value.trim();
    changed('push');
    byId('table').focus();
  });
  byId('clear').addEventListener('click', () => {
    clearFilters();
    changed('push');
  });
  byId('skip').addEventListener('click', (event) => {
    event.preventDefault();
    byId('table').focus();
  });
  window.addEventListener('popstate', restore);
  restore();
  byId('status').hidden = true;
  document.body.dataset.ready = 'yes';
  document.body.dataset.loaded = String(Math.round(performance.now()));
}

start().catch(fail);
