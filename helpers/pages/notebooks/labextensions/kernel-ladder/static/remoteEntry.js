// What JupyterLab lacks for the lessons: C++ colours in cells that begin with %%exercise, alternative texts of pictures
// in outputs, and text in columns that stays aligned. JupyterLab loads this file as it is: module federation asks for an
// object with init() and get(), which webpack would wrap in 5 kB of its own.
// https://webpack.js.org/concepts/module-federation/ (read in November 2026)
(() => {
  const NAME = "kernel-ladder";
  const CPP = "text/x-c++src";
  const EXERCISE = /^%%exercise\s+\w+[^\n]*\n/;
  const PYTHON = /^(?:def |import |from |@)/m; // some exercises are answered in Python
  const here = document.currentScript.src;

  const isCpp = text => EXERCISE.test(text) && !PYTHON.test(text);

  // JupyterLab gives each code cell the notebook's language, and does so again when a kernel has started.
  function colour(cell) {
    if (cell.type !== "code") return;
    let usual = cell.mimeType;
    const set = () => {
      if (cell.mimeType !== CPP) usual = cell.mimeType;
      const wanted = isCpp(cell.sharedModel.getSource()) ? CPP : usual;
      if (cell.mimeType !== wanted) cell.mimeType = wanted;
    };
    set();
    cell.mimeTypeChanged.connect(set);
    cell.contentChanged.connect(set);
  }

  // Lets `change` have the node and the data of each output of a type, once it is drawn.
  function drawn(registry, type, change) {
    const usual = registry.getFactory(type);
    const createRenderer = options => {
      const renderer = usual.createRenderer(options);
      const render = renderer.renderModel.bind(renderer);
      renderer.renderModel = async model => {
        await render(model);
        change(renderer.node, model.data);
      };
      return renderer;
    };
    registry.addFactory({ ...usual, createRenderer });
  }

  // What a picture prints where pictures cannot be shown says what is in it.
  const describe = (node, data) => {
    const image = node.querySelector("img");
    if (image && data["text/plain"]) image.alt = String(data["text/plain"]);
  };

  // Columns stay below one another: their lines do not wrap.
  const align = type => (node, data) => node.classList.toggle("ladder-columns", /\S {3,}\S/.test(String(data[type])));

  function activate(app, tracker, registry) {
    drawn(registry, "image/png", describe);
    for (const type of ["text/plain", "application/vnd.jupyter.stdout"]) drawn(registry, type, align(type));
    tracker.widgetAdded.connect(async (_, panel) => {
      await panel.context.ready;
      const cells = panel.content.model.cells;
      for (const cell of cells) colour(cell);
      cells.changed.connect((_, change) => change.newValues.forEach(colour));
    });
  }

  let scope;
  const shared = async name => (await Object.values(scope[name])[0].get())();
  const load = async () => {
    const style = Object.assign(document.createElement("link"), { rel: "stylesheet", href: new URL("lessons.css", here) });
    document.head.append(style);
    const { INotebookTracker } = await shared("@jupyterlab/notebook");
    const { IRenderMimeRegistry } = await shared("@jupyterlab/rendermime");
    const requires = [INotebookTracker, IRenderMimeRegistry];
    const module = { __esModule: true, default: { id: `${NAME}:plugin`, autoStart: true, requires, activate } };
    return () => module;
  };
  (window._JUPYTERLAB ??= {})[NAME] = { init: given => void (scope = given), get: load };
})();
