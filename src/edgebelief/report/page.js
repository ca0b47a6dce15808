/* The charts of the report. Names are user input: they reach the page by textContent, and Plotly by
   `literal`, which escapes the HTML and TeX that Plotly would interpret. */
(function () {
  "use strict";

  const data = JSON.parse(document.getElementById("report-data").textContent);
  const byId = (id) => document.getElementById(id);
  const all = (selector) => Array.from(document.querySelectorAll(selector));
  const coarse = window.matchMedia("(pointer: coarse)").matches;
  const config = { displayModeBar: false, responsive: true, doubleClick: "reset", showTips: false };

  // ---------------------------------------------------------------- text and numbers

  const shorten = (name, longest) => {
    const letters = Array.from(name);
    return letters.length > longest ? letters.slice(0, longest - 1).join("") + "…" : name;
  };
  const literal = (name) =>
    name.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\$/g, "&#36;");
  const many = (n, noun) => n.toLocaleString("en-US") + " " + noun + (n === 1 ? "" : "s");
  const probability = (p) =>
    p > 0.99995 && p < 1 ? "> 0.9999" : p < 0.00005 && p > 0 ? "< 0.0001" : p.toFixed(4);
  const LABELS = { 0: "no edge", 1: "edge", "?": "unknown" };

  // Runs `work` at most once per frame.
  function onceAFrame(work) {
    let waiting = false;
    return () => {
      if (waiting) return;
      waiting = true;
      window.requestAnimationFrame(() => { waiting = false; work(); });
    };
  }

  function element(tag, text, parent) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.appendChild(made);
    return made;
  }

  function fill(list, rows) {
    list.replaceChildren();
    for (const [term, value, isName] of rows) {
      element("dt", term, list);
      const definition = element("dd", undefined, list);
      element(isName ? "bdi" : "span", value, definition);
    }
  }

  function pairRows(graph, source, target, pair) {
    const rows = [
      ["source", graph.names[source], true],
      ["target", graph.names[target], true],
      ["probability", probability(pair.mean)],
      ["total sd", probability(Math.sqrt(pair.mean * (1 - pair.mean)))],
      ["epistemic sd", probability(pair.epistemic)],
      ["distance", pair.distance === null ? "unknown: no candidate" : String(pair.distance)],
    ];
    if (pair.label !== null) rows.push(["label", LABELS[pair.label]]);
    return rows;
  }

  // ---------------------------------------------------------------- colours and layout

  let look;
  function readLook() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue("--" + name).trim();
    look = { font: getComputedStyle(document.body).fontFamily };
    for (const name of ["card", "ink", "muted", "rule", "blue", "orange", "green", "pale", "low",
      "high", "doubt-low", "doubt-high", "mark"]) look[name] = of(name);
    look.dark = brightness(look.card) < 128;
  }
  const channels = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
  const brightness = (hex) => channels(hex).reduce((sum, c) => sum + c, 0) / 3;
  const mixed = (from, to, share) => {
    const [a, b] = [channels(from), channels(to)];
    return "rgb(" + a.map((c, k) => Math.round(c + (b[k] - c) * share)).join(",") + ")";
  };
  const beliefScale = () => [[0, look.low], [0.5, look.dark ? "#3f85b8" : "#5fa8d8"], [1, look.high]];
  const doubtScale = () => [[0, look["doubt-low"]], [0.5, look.dark ? "#b0702f" : "#e0a35c"], [1, look["doubt-high"]]];
  // The part of the plasma colour map that is visible on the background of the page.
  const edgeDoubt = (share) => {
    const stops = look.dark ? ["#a52bb0", "#ed7953", "#f0f04a"] : ["#2d0594", "#b12a90", "#e8663c"];
    return share < 0.5 ? mixed(stops[0], stops[1], 2 * share) : mixed(stops[1], stops[2], 2 * share - 1);
  };
  const edgeDoubtRamp = () => "linear-gradient(90deg," + [0, 0.5, 1].map(edgeDoubt).join(",") + ")";

  function layout(more) {
    const axis = () => ({
      color: look.muted, gridcolor: look.rule, linecolor: look.pale, zeroline: false,
      tickfont: { color: look.muted, size: 12 }, title: { font: { size: 13, color: look.muted } },
      automargin: true, fixedrange: true,
    });
    const made = {
      autosize: true, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: look.font, size: 13, color: look.ink }, margin: { l: 48, r: 12, t: 12, b: 40 },
      showlegend: false, hovermode: "closest", dragmode: false,
      hoverlabel: { bgcolor: look.card, bordercolor: look.muted, font: { color: look.ink, family: look.font } },
    };
    for (const [name, value] of Object.entries(more)) {
      made[name] = /^[xy]axis/.test(name) ? Object.assign(axis(), value) : value;
      if (/^[xy]axis/.test(name) && typeof value.title === "string") {
        made[name].title = { text: value.title, font: { size: 13, color: look.muted }, standoff: 8 };
      }
    }
    return made;
  }

  // ---------------------------------------------------------------- the tooltip

  const tip = byId("tip");
  const tipList = element("dl", undefined, tip);
  function showTip(event, rows) {
    fill(tipList, rows);
    tip.hidden = false;
    const { clientX: x, clientY: y } = event.touches && event.touches.length ? event.touches[0] : event;
    const [width, height] = [tip.offsetWidth, tip.offsetHeight];
    const left = x + 16 + width > window.innerWidth ? x - 16 - width : x + 16;
    const top = y + 16 + height > window.innerHeight ? y - 16 - height : y + 16;
    tip.style.left = Math.max(4, Math.min(left, window.innerWidth - width - 4)) + "px";
    tip.style.top = Math.max(4, top) + "px";
  }
  const hideTip = () => { tip.hidden = true; };
  window.addEventListener("scroll", hideTip, { passive: true });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });

  // ---------------------------------------------------------------- one graph

  let chosen = 0;
  const graph = () => data.graphs[chosen];

  // The index of pair (i, j), i < j, in a vector over the pairs of n nodes.
  const pairIndex = (n, i, j) => i * n - (i * (i + 1)) / 2 + j - i - 1;
  const pairAt = (vectors, k) => ({
    distance: vectors.distance[k], mean: vectors.mean[k], epistemic: vectors.epistemic[k],
    label: vectors.label === null ? null : vectors.label[k],
  });

  const candidates = new Map();
  function edgesOf(current) {
    // The strongest edges, most probable first; computed once for each graph.
    if (candidates.has(current)) return candidates.get(current);
    const edges = [];
    if (current.edges) {
      current.edges.i.forEach((i, k) => edges.push({ i, j: current.edges.j[k], ...pairAt(current.edges, k) }));
    } else {
      const n = current.names.length;
      for (let i = 0, k = 0; i < n; i += 1) {
        for (let j = i + 1; j < n; j += 1, k += 1) edges.push({ i, j, ...pairAt(current, k) });
      }
    }
    edges.sort((first, second) => second.mean - first.mean);
    candidates.set(current, edges);
    return edges;
  }

  const graphPlot = byId("graph-plot");
  const least = byId("least");
  const WIDTHS = 12, SHADES = 6, MARGIN = 8;
  // Names by default where there is room for them.
  const named = () => graph().names.length <= Math.min(60, graphPlot.clientWidth / 16);

  function drawGraph() {
    const current = graph(), threshold = Number(least.value);
    const colour = document.querySelector('input[name="colour"]:checked').value;
    const probable = edgesOf(current).filter((edge) => edge.mean >= threshold);
    const drawn = probable.slice(0, data.limits.edges);
    const most = edgesOf(current).slice(0, data.limits.edges)
      .reduce((largest, edge) => Math.max(largest, edge.epistemic), 1e-6);
    const firm = edgesOf(current).filter((edge) => edge.mean > 0.5).length;
    const widest = 4 * Math.min(1, Math.sqrt(120 / Math.max(firm, 1)));
    const shade = {
      belief: () => 0,
      epistemic: (edge) => Math.min(SHADES - 1, Math.floor((edge.epistemic / most) * SHADES)),
      label: (edge) => (edge.label === "1" ? 1 : edge.label === "0" ? 2 : 0),
    }[colour];
    const colourOf = {
      belief: () => look.blue,
      epistemic: (k) => edgeDoubt(k / (SHADES - 1)),
      label: (k) => [look.muted, look.blue, look.orange][k],
    }[colour];

    const groups = new Map();
    for (const edge of drawn) {
      const width = Math.min(WIDTHS - 1, Math.floor(edge.mean * WIDTHS));
      const name = width * SHADES + shade(edge);
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(edge);
    }
    const traces = Array.from(groups.keys()).sort((a, b) => a - b).map((name) => {
      const firmness = (Math.floor(name / SHADES) + 0.5) / WIDTHS;
      const trace = {
        type: "scatter", mode: "lines", name: "edges", hoverinfo: "skip", x: [], y: [],
        opacity: 0.15 + 0.8 * firmness,
        line: { color: colourOf(name % SHADES), width: 0.5 + widest * firmness },
      };
      for (const { i, j } of groups.get(name)) {
        trace.x.push(current.x[i], current.x[j], null);
        trace.y.push(current.y[i], current.y[j], null);
      }
      return trace;
    });

    const n = current.names.length;
    const withNames = byId("show-names").checked;
    traces.push({
      type: "scatter", mode: withNames ? "markers+text" : "markers", name: "nodes", hoverinfo: "skip",
      x: current.x, y: current.y, cliponaxis: false,
      text: current.names.map((name) => literal(shorten(name, 16))), textposition: "top center",
      textfont: { size: n > 60 ? 10 : 12, color: look.ink },
      marker: { size: n > 150 ? 6 : n > 40 ? 9 : 12, color: look.card, opacity: 1,
        line: { color: look.ink, width: 1.5 } },
    });

    const free = { visible: false, fixedrange: coarse };
    const drawing = layout({
      xaxis: { ...free, range: [-0.06, 1.06] }, yaxis: { ...free, range: [-0.06, 1.1] },
      margin: { l: MARGIN, r: MARGIN, t: MARGIN, b: MARGIN }, dragmode: coarse ? false : "zoom", hovermode: false,
      uirevision: chosen,
    });
    graphPlot.drawnEdges = drawn;
    Plotly.react(graphPlot, traces, drawing, config);

    byId("least-value").textContent = threshold.toFixed(2);
    least.setAttribute("aria-valuetext", "probability " + threshold.toFixed(2) + " or more");
    byId("graph-status").textContent = status(current, threshold, probable, drawn);
    drawKey(colour, most);
    graphPlot.setAttribute("aria-label", "Drawing of graph " + (chosen + 1) + ": " +
      many(n, "node") + ", " + many(drawn.length, "edge"));
  }

  function status(current, threshold, probable, drawn) {
    const limit = "a probability of " + threshold.toFixed(2) + " or more";
    if (!drawn.length) return "No pair has " + limit + ". Move the slider to the left to see less probable ones.";
    let text = many(drawn.length, "edge") + " drawn, with " + limit + ".";
    const capped = probable.length > drawn.length || (current.edges && drawn.length === current.edges.i.length);
    if (capped) text = "Drawn: the " + many(drawn.length, "most probable edge") + " of those with " + limit + ".";
    if (current.label !== null && !current.edges) {
      const there = (edges) => edges.filter((edge) => edge.label === "1").length;
      const missed = there(edgesOf(current)) - there(drawn);
      const wrong = drawn.filter((edge) => edge.label === "0").length;
      text += " According to the labels, " + wrong.toLocaleString("en-US") + " of them " + (wrong === 1 ? "is not an edge" : "are not edges") +
        ", and " + many(missed, "edge") + (missed === 1 ? " is" : " are") + " not drawn.";
    }
    return text;
  }

  function drawKey(colour, most) {
    const key = byId("graph-key");
    key.replaceChildren();
    const line = (hex, height, opacity) => {
      const made = element("i");
      made.style.background = hex;
      made.style.height = height + "px";
      made.style.opacity = opacity;
      return made;
    };
    const entry = (mark, text) => {
      const span = element("span", undefined, key);
      span.appendChild(mark);
      span.appendChild(document.createTextNode(text));
    };
    if (colour === "label") {
      entry(line(look.blue, 4, 1), "labelled edge");
      entry(line(look.orange, 4, 1), "labelled no edge");
      if (graph().label === null || graph().label.includes("?")) entry(line(look.muted, 4, 1), "label unknown");
    } else if (colour === "epistemic") {
      const ramp = element("i");
      ramp.className = "ramp";
      ramp.style.background = edgeDoubtRamp();
      entry(ramp, "epistemic sd from 0 to " + most.toPrecision(2));
    }
    const plain = colour === "belief" ? look.blue : look.muted;
    for (const p of [0.25, 0.5, 1]) entry(line(plain, 0.5 + 4 * p, 0.15 + 0.8 * p), "probability " + p);
  }

  // The node under the pointer, else the nearest edge. Positions in pixels follow from the margins
  // and ranges that drawGraph set (zooming changes the ranges).
  function nearest(event) {
    const box = graphPlot.getBoundingClientRect(), current = graph();
    const [x0, x1] = graphPlot.layout.xaxis.range, [y0, y1] = graphPlot.layout.yaxis.range;
    const across = (x) => MARGIN + ((x - x0) / (x1 - x0)) * (box.width - 2 * MARGIN);
    const down = (y) => MARGIN + ((y1 - y) / (y1 - y0)) * (box.height - 2 * MARGIN);
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    const xs = current.x.map(across), ys = current.y.map(down);
    let best = { node: null, edge: null }, distance = 9;
    xs.forEach((x, k) => {
      const away = Math.hypot(px - x, py - ys[k]);
      if (away < distance) { best = { node: k, edge: null }; distance = away; }
    });
    if (best.node !== null) return best;
    for (const edge of graphPlot.drawnEdges) {
      const [ax, ay, bx, by] = [xs[edge.i], ys[edge.i], xs[edge.j], ys[edge.j]];
      const length = (bx - ax) ** 2 + (by - ay) ** 2 || 1;
      const share = Math.min(1, Math.max(0, ((px - ax) * (bx - ax) + (py - ay) * (by - ay)) / length));
      const away = Math.hypot(px - ax - share * (bx - ax), py - ay - share * (by - ay));
      if (away < Math.min(distance, 7)) { best.edge = edge; distance = away; }
    }
    return best;
  }

  function listenToGraph() {
    const tell = (event) => {
      if (event.buttons && event.type === "pointermove") return hideTip(); // zooming
      const { node, edge } = nearest(event);
      if (node !== null) {
        showTip(event, [["node", graph().names[node], true], ["expected degree", graph().degree[node].toFixed(1)]]);
      } else if (edge !== null) showTip(event, pairRows(graph(), edge.i, edge.j, edge));
      else hideTip();
    };
    graphPlot.addEventListener("pointermove", tell);
    graphPlot.addEventListener("pointerdown", tell);
    graphPlot.addEventListener("pointerleave", hideTip);
  }

  // ---------------------------------------------------------------- matrices

  const matrixPlots = all("[data-matrix]");
  let matrices = {}, cursor = null;

  const shownNodes = (current) => current.nodes || current.names.map((_, k) => k);

  function square(current, values) {
    const n = shownNodes(current).length;
    return Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) =>
      i === j ? null : values[i < j ? pairIndex(n, i, j) : pairIndex(n, j, i)]));
  }

  function compute(current) {
    const greatest = current.epistemic.reduce((largest, x) => Math.max(largest, x), 1e-6);
    const labels = current.label === null ? current.mean.map(() => 0.5)
      : Array.from(current.label, (c) => (c === "?" ? 0.5 : Number(c)));
    return {
      distance: { z: square(current, current.distance) },
      mean: { z: square(current, current.mean), zmin: 0, zmax: 1 },
      total: { z: square(current, current.mean.map((p) => Math.sqrt(p * (1 - p)))), zmin: 0, zmax: 0.5 },
      epistemic: { z: square(current, current.epistemic), zmin: 0, zmax: greatest },
      label: { z: square(current, labels), zmin: 0, zmax: 1, unknown: labels.includes(0.5) },
    };
  }

  function scaleOf(kind, matrix) {
    if (kind === "distance") return look.dark ? [[0, "#fde99a"], [0.5, "#8f8a72"], [1, "#22304d"]] : [[0, "#1d3557"], [0.5, "#8c8c83"], [1, "#f6e7a8"]];
    if (kind === "mean") return beliefScale();
    if (kind === "label") {
      const [no, yes] = [look.low, look.dark ? "#dfe7ee" : "#22303c"];
      return matrix.unknown ? [[0, no], [1 / 3, no], [1 / 3, look.pale], [2 / 3, look.pale], [2 / 3, yes], [1, yes]]
        : [[0, no], [0.5, no], [0.5, yes], [1, yes]];
    }
    return doubtScale();
  }

  function labelTicks(matrix) {
    return matrix.unknown ? { tickvals: [1 / 6, 1 / 2, 5 / 6], ticktext: ["no edge", "unknown", "edge"] }
      : { tickvals: [0.25, 0.75], ticktext: ["no edge", "edge"] };
  }

  function drawMatrices() {
    const current = graph(), nodes = shownNodes(current), n = nodes.length;
    matrices = compute(current);
    for (const plot of matrixPlots) {
      const kind = plot.dataset.matrix, matrix = matrices[kind];
      const size = plot.clientWidth;
      const step = Math.ceil(n / Math.max(4, Math.floor((size - 60) / 11)));
      const rows = nodes.map((_, k) => k).filter((k) => k % step === 0);
      const ticks = {
        tickvals: rows, ticktext: rows.map((k) => literal(shorten(current.names[nodes[k]], 9))),
        ticks: "", showgrid: false, showline: false, tickfont: { size: 10, color: look.muted }, automargin: true,
        fixedrange: coarse,
      };
      Plotly.react(plot, [{
        type: "heatmap", z: matrix.z, zmin: matrix.zmin, zmax: matrix.zmax, hoverinfo: "none",
        hoverongaps: false, colorscale: scaleOf(kind, matrix), xgap: n <= 30 ? 1 : 0, ygap: n <= 30 ? 1 : 0,
        colorbar: {
          orientation: "h", thickness: 10, len: 1, lenmode: "fraction", x: 0.5, xanchor: "center", y: 0,
          yanchor: "top", outlinewidth: 0, ypad: 6, xpad: 0, nticks: 5,
          tickfont: { size: 11, color: look.muted }, ...(kind === "label" ? labelTicks(matrix) : {}),
        },
      }], layout({
        xaxis: { ...ticks, range: [-0.5, n - 0.5], showticklabels: false, constrain: "domain" }, // as the rows
        yaxis: { ...ticks, range: [n - 0.5, -0.5], scaleanchor: "x", constrain: "domain", constraintoward: "top" },
        margin: { l: 8, r: 8, t: 4, b: 34 }, dragmode: coarse ? false : "zoom", shapes: marks(),
        uirevision: chosen,
      }), config);
    }
  }

  function marks() {
    if (!cursor) return [];
    const n = shownNodes(graph()).length, [i, j] = cursor;
    const band = { type: "rect", line: { width: 0 }, fillcolor: look.mark, opacity: 0.22 };
    const cell = { type: "rect", x0: j - 0.5, x1: j + 0.5, y0: i - 0.5, y1: i + 0.5 };
    return [
      { ...band, x0: -0.5, x1: n - 0.5, y0: i - 0.5, y1: i + 0.5 },
      { ...band, x0: j - 0.5, x1: j + 0.5, y0: -0.5, y1: n - 0.5 },
      { ...cell, line: { color: look.card, width: 5 } },
      { ...cell, line: { color: look.mark, width: 2.5 } },
    ];
  }

  const mark = onceAFrame(() => {
    const shapes = marks();
    for (const plot of matrixPlots) Plotly.relayout(plot, { shapes });
  });

  function cursorRows() {
    if (!cursor) return [["pair", "none yet"]];
    const current = graph(), nodes = shownNodes(current), [i, j] = cursor;
    if (i === j) return [["node", current.names[nodes[i]], true], ["", "a node has no edge to itself"]];
    const k = pairIndex(nodes.length, Math.min(i, j), Math.max(i, j));
    return pairRows(current, nodes[i], nodes[j], pairAt(current, k));
  }

  function point(i, j) {
    if (cursor && cursor[0] === i && cursor[1] === j) return;
    cursor = [i, j];
    fill(byId("matrix-reading"), cursorRows());
    mark();
  }

  function leave() {
    hideTip();
    cursor = null;
    mark();
  }

  const grid = byId("matrix-grid");
  function listenToMatrices() {
    let syncing = false;
    for (const plot of matrixPlots) {
      plot.on("plotly_hover", ({ points, event }) => {
        point(points[0].y, points[0].x);
        showTip(event, cursorRows());
      });
      plot.on("plotly_unhover", leave);
      plot.on("plotly_relayout", (change) => {
        if (syncing || !Object.keys(change).some((name) => name.includes("axis"))) return;
        const update = { "xaxis.range": plot.layout.xaxis.range.slice(), "yaxis.range": plot.layout.yaxis.range.slice() };
        syncing = true;
        Promise.all(matrixPlots.filter((other) => other !== plot).map((other) => Plotly.relayout(other, update)))
          .finally(() => { syncing = false; });
      });
    }
    grid.addEventListener("keydown", (event) => {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!step) return;
      event.preventDefault();
      const last = shownNodes(graph()).length - 1;
      const [i, j] = cursor || [0, step[1] < 0 ? 1 : 0];
      point(Math.min(last, Math.max(0, i + step[0])), Math.min(last, Math.max(0, j + step[1])));
    });
    grid.addEventListener("blur", leave);
  }

  // ---------------------------------------------------------------- calibration

  function drawReliability() {
    const curve = data.calibration, plot = byId("reliability-plot");
    if (!curve || !plot) return;
    const bins = curve.count.map((_, k) => k).filter((k) => curve.count[k] > 0);
    const middle = (k) => (curve.edges[k] + curve.edges[k + 1]) / 2;
    const width = bins.map((k) => 0.86 * (curve.edges[k + 1] - curve.edges[k]));
    const dots = (mask, color, symbol, name) => {
      const some = bins.filter((k) => curve.outside[k] === mask);
      return {
        type: "scatter", mode: "markers", name, x: some.map((k) => curve.confidence[k]), y: some.map((k) => curve.accuracy[k]),
        marker: { color, size: 11, symbol, line: { color: look.card, width: 1.5 } }, customdata: some.map((k) => curve.count[k]),
        hovertemplate: "confidence %{x:.3f}<br>accuracy %{y:.3f}<br>%{customdata:,} pairs<extra></extra>", showlegend: some.length > 0,
      };
    };
    const least = Math.min(0.5, ...bins.map((k) => Math.min(curve.accuracy[k], curve.low[k])));
    Plotly.react(plot, [
      { type: "bar", name: "95 % if calibrated", x: bins.map(middle), base: bins.map((k) => curve.low[k]),
        y: bins.map((k) => curve.high[k] - curve.low[k]), width, marker: { color: look.pale, line: { color: look.pale, width: 1.5 } }, hoverinfo: "skip" },
      { type: "scatter", mode: "lines", x: [0.5, 1], y: [0.5, 1], line: { color: look.muted, dash: "dash", width: 1.5 }, hoverinfo: "skip", showlegend: false },
      dots(false, look.blue, "circle", "accuracy"),
      dots(true, look.orange, "diamond", "outside the bar"),
      { type: "bar", name: "pairs", x: bins.map(middle), y: bins.map((k) => curve.count[k]), width, marker: { color: look.blue }, yaxis: "y2",
        hovertemplate: "%{y:,} pairs<extra></extra>", showlegend: false },
    ], layout({
      xaxis: { range: [0.485, 1.015], title: "confidence", anchor: "y2" },
      yaxis: { domain: [0.34, 1], range: [least - 0.04, 1.03], title: "accuracy" },
      yaxis2: { domain: [0, 0.24], title: "pairs", type: "log", range: [Math.log10(0.7), Math.log10(1.6 * Math.max(...curve.count))], dtick: 1 },
      showlegend: true, legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { size: 12, color: look.ink } },
      margin: { l: 52, r: 8, t: 8, b: 40 },
    }), config);
  }

  // ---------------------------------------------------------------- terms

  const termPlots = all("[data-term]");
  const termOf = (plot) => data.terms[Number(plot.dataset.term)];
  const signed = (x) => (Math.abs(x) < 0.005 ? "0" : (x > 0 ? "+" : "−") + Math.abs(x).toFixed(Math.abs(x) < 10 ? 2 : 1));

  function drawTerms() {
    // All terms have the same vertical axis, so that their sizes can be compared.
    const ends = data.terms.flatMap((term) => [...term.low, ...term.high, 0]);
    const low = ends.reduce((a, b) => Math.min(a, b), 0), high = ends.reduce((a, b) => Math.max(a, b), 0);
    const room = 0.06 * (high - low) || 1;
    for (const plot of termPlots) {
      const term = termOf(plot), n = term.x.length;
      const color = term.needed ? look.blue : look.muted;
      const edge = { type: "scatter", mode: "lines", x: term.x, hoverinfo: "skip", line: { width: 0, color } };
      const shape = { type: "scatter", x: term.x, y: term.mean, hoverinfo: "none" };
      const traces = term.levels === null ? [
        { ...edge, y: term.low },
        { ...edge, y: term.high, fill: "tonexty", fillcolor: color + (term.needed ? "33" : "26") },
        { ...shape, mode: "lines", line: { color, simplify: false, width: 2.5, dash: term.needed ? "solid" : "dot" } },
      ] : [
        { ...shape, mode: "markers", marker: { color, size: 9, symbol: term.needed ? "circle" : "circle-open" },
          error_y: { type: "data", symmetric: false, color, thickness: 2, width: 5,
            array: term.high.map((x, k) => x - term.mean[k]), arrayminus: term.mean.map((x, k) => x - term.low[k]) } },
      ];
      const step = Math.ceil(n / Math.max(2, Math.floor(plot.clientWidth / 40)));
      const named = term.levels === null ? {} : {
        tickvals: term.x.filter((_, k) => k % step === 0), range: [-0.5, n - 0.5],
        ticktext: term.levels.filter((_, k) => k % step === 0).map((name) => literal(shorten(name, 10))),
      };
      Plotly.react(plot, traces, layout({
        xaxis: { title: literal(shorten(term.name, 30)), showgrid: false, nticks: 6, ...named },
        yaxis: { title: "adds to log odds", range: [low - room, high + room], nticks: 5, zeroline: true, zerolinecolor: look.muted, zerolinewidth: 1.5 },
        hovermode: "x", margin: { l: 48, r: 8, t: 8, b: 36 },
      }), config);
    }
  }

  function listenToTerms() {
    for (const plot of termPlots) {
      plot.on("plotly_hover", ({ points, event }) => {
        const term = termOf(plot), k = points[0].pointNumber;
        showTip(event, [
          ["term", term.name, true],
          ["value", term.levels === null ? String(Number(term.x[k].toPrecision(4))) : term.levels[k], true],
          ["adds", signed(term.mean[k])],
          ["90 % interval", signed(term.low[k]) + " to " + signed(term.high[k])],
        ]);
      });
      plot.on("plotly_unhover", hideTip);
    }
  }

  // ---------------------------------------------------------------- parameters and checks

  function drawParameters() {
    for (const plot of all("[data-parameter]")) {
      const marginal = data.marginals[plot.dataset.parameter];
      Plotly.react(plot, [
        { type: "scatter", mode: "lines", name: "posterior", x: marginal.x, y: marginal.posterior, fill: "tozeroy",
          line: { color: look.blue, width: 2.5 }, fillcolor: look.blue + "33", hovertemplate: "%{x:.4g}: density %{y:.3g}<extra>posterior</extra>" },
        { type: "scatter", mode: "lines", name: "prior", x: marginal.x, y: marginal.prior,
          line: { color: look.orange, width: 2.5, dash: "dash" }, hovertemplate: "%{x:.4g}: density %{y:.3g}<extra>prior</extra>" },
      ], layout({
        xaxis: { title: literal(plot.dataset.parameter), showgrid: false, nticks: 6 },
        yaxis: { title: "density", rangemode: "tozero", nticks: 4 }, showlegend: true,
        legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { size: 12, color: look.ink } },
        margin: { l: 44, r: 8, t: 8, b: 36 },
      }), config);
    }
  }

  function drawChecks() {
    for (const plot of all("[data-check]")) {
      const check = data.checks[Number(plot.dataset.check)];
      const middle = check.share.map((_, k) => (check.edges[k] + check.edges[k + 1]) / 2);
      const width = check.share.map((_, k) => check.edges[k + 1] - check.edges[k]);
      const line = check.observed === null ? [] : [{ type: "line", x0: check.observed, x1: check.observed, y0: 0, y1: 1, yref: "paper", line: { color: look.ink, width: 2 } }];
      const note = check.observed === null ? [] : [{ x: check.observed, y: 1, yref: "paper", yanchor: "bottom", text: "labels", showarrow: false, font: { size: 12, color: look.ink } }];
      const [low, high] = [check.edges[0], check.edges[check.edges.length - 1]];
      const room = 0.03 * (high - low);
      Plotly.react(plot, [{
        type: "bar", x: middle, y: check.share, width, marker: { color: check.source === "prior" ? look.orange : look.blue, line: { color: look.card, width: 0.5 } },
        hovertemplate: "density %{x:.3f}: %{y:.1%} of data sets<extra></extra>",
      }], layout({
        xaxis: { title: "density", range: [low - room, high + room], showgrid: false, nticks: 6 },
        yaxis: { title: "share of data sets", tickformat: ".0%", nticks: 4, rangemode: "tozero" },
        shapes: line, annotations: note, margin: { l: 52, r: 12, t: 24, b: 40 }, bargap: 0,
      }), config);
    }
  }

  // ---------------------------------------------------------------- all together

  function drawAll() {
    readLook();
    drawGraph();
    drawMatrices();
    drawReliability();
    drawTerms();
    drawParameters();
    drawChecks();
  }

  function choose(which) {
    chosen = which;
    cursor = null;
    hideTip();
    for (const select of all(".choose-graph")) select.value = String(which);
    byId("show-names").checked = named();
    fill(byId("matrix-reading"), cursorRows());
    drawGraph();
    drawMatrices();
  }

  readLook();
  least.value = "0.5"; // browsers restore the last value on reload
  byId("show-names").checked = named();
  document.querySelector('input[name="colour"]').checked = true;
  for (const select of all(".choose-graph")) {
    select.value = "0";
    select.addEventListener("change", () => choose(Number(select.value)));
  }
  fill(byId("matrix-reading"), cursorRows());
  drawAll();
  listenToGraph();
  listenToMatrices();
  listenToTerms();
  least.addEventListener("input", onceAFrame(drawGraph));
  byId("show-names").addEventListener("change", drawGraph);
  for (const choice of all('input[name="colour"]')) choice.addEventListener("change", drawGraph);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  window.addEventListener("beforeprint", () => { document.documentElement.dataset.theme = "light"; drawAll(); });
  window.addEventListener("afterprint", () => { delete document.documentElement.dataset.theme; drawAll(); });

  const copy = byId("copy");
  if (copy) {
    copy.hidden = false;
    copy.addEventListener("click", () => {
      window.getSelection().selectAllChildren(byId("recipe"));
      copy.textContent = document.execCommand("copy") ? "Copied" : "Press Ctrl+C";
    });
  }
})();
