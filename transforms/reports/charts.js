"use strict";
// Draws the charts of a report from the JSON beside them; again when the width, the colour scheme or the medium changes.
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  document.documentElement.classList.add("js");

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const exact = (number) => number.toLocaleString("en");
  const short = (number) => Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(number);
  const label = (number) => (number < 1e7 ? exact(number) : short(number));

  // Tooltips are made of nodes, never of HTML: names may come from the corpus.
  const note = (...lines) => {
    const box = document.createElement("div");
    for (const line of lines.filter(Boolean)) {
      const row = document.createElement("div");
      row.textContent = line;
      box.append(row);
    }
    return box;
  };

  const common = () => ({
    animation: false,
    textStyle: { fontFamily: getComputedStyle(document.body).fontFamily, color: colour("text") },
    tooltip: {
      confine: true,
      transitionDuration: 0,
      backgroundColor: colour("ground"),
      borderColor: colour("line"),
      textStyle: { color: colour("text"), fontSize: 13 },
      extraCssText: "max-width: 20rem; white-space: normal;",
    },
  });

  const axis = (more) => ({
    nameTextStyle: { color: colour("soft") },
    axisLabel: { color: colour("soft"), hideOverlap: true, ...more.axisLabel },
    axisLine: { lineStyle: { color: colour("line") } },
    axisTick: { show: false },
    splitLine: { show: more.type !== "category", lineStyle: { color: colour("line") } },
    minorSplitLine: { show: false },
    ...Object.fromEntries(Object.entries(more).filter(([name]) => name !== "axisLabel")),
  });

  const kinds = {
    histogram: (chart) => ({
      grid: { left: 4, right: 16, top: 12, bottom: 24, containLabel: true },
      tooltip: {
        trigger: "axis",
        axisPointer: { type: "shadow" },
        formatter: ([{ dataIndex, value }]) => note(`${chart.labels[dataIndex]} ${chart.unit}`, `${exact(value)} times`),
      },
      xAxis: axis({
        type: "category",
        data: chart.starts.map((start, place) => (chart.is_open && place === chart.starts.length - 1 ? "≥ " : "") + short(start)),
        name: chart.unit,
        nameLocation: "middle",
        nameGap: 30,
      }),
      yAxis: axis({ type: "value", axisLabel: { formatter: short } }),
      series: [{ type: "bar", data: chart.counts, barCategoryGap: "12%", itemStyle: { color: colour("blue") } }],
    }),

    bars: (chart, width) => ({
      grid: { left: 4, right: 112, top: 0, bottom: 0, containLabel: true },
      tooltip: { trigger: "item", formatter: ({ name, value }) => note(name, `${exact(value)} ${chart.unit}`) },
      xAxis: { type: "value", show: false },
      yAxis: axis({
        type: "category",
        data: chart.labels,
        inverse: true,
        axisLabel: { width: width * 0.3, overflow: "truncate", color: colour("text"), interval: 0 },
      }),
      series: [
        {
          type: "bar",
          data: chart.counts,
          barCategoryGap: "30%",
          barMinHeight: 1,
          itemStyle: { color: colour("blue") },
          label: {
            show: true,
            position: "right",
            color: colour("soft"),
            formatter: ({ dataIndex, value }) => `${label(value)} · ${chart.shares[dataIndex]}`,
          },
        },
      ],
    }),

    ranks: (chart) => ({
      grid: { left: 4, right: 16, top: 12, bottom: 24, containLabel: true },
      tooltip: {
        trigger: "axis",
        formatter: ([{ value }]) => note(`rank ${exact(value[0])}`, `${exact(value[1])} ${chart.unit}`),
      },
      xAxis: axis({ type: "log", name: "rank", nameLocation: "middle", nameGap: 30, axisLabel: { formatter: short } }),
      yAxis: axis({ type: "log", axisLabel: { formatter: short } }),
      series: [
        {
          type: "line",
          data: chart.points,
          showSymbol: false,
          lineStyle: { width: 2 },
          itemStyle: { color: colour("blue") },
        },
      ],
    }),

    flow: (chart, width) => {
      const tint = { written: colour("blue"), filtered: colour("amber"), rejected: colour("red") };
      const nodes = chart.branches.map((branch, number) => ({
        name: String(number),
        itemStyle: { color: tint[branch.kind] },
        label: { formatter: `{name|${branch.name}}\n{count|${label(branch.count)} · ${branch.share}}` },
      }));
      return {
        tooltip: {
          trigger: "item",
          formatter: ({ dataType, data }) => {
            const branch = chart.branches[Number(dataType === "edge" ? data.target : data.name)];
            if (!branch) return note(`${exact(chart.read)} ${chart.counts} read`);
            const what = branch.kind === "written" ? "written" : `${branch.kind}: ${branch.name}`;
            return note(what, branch.meaning, `${exact(branch.count)} ${chart.counts}, ${branch.share}`);
          },
        },
        series: [
          {
            type: "sankey",
            left: 0,
            right: Math.min(150, width * 0.6),
            top: 8,
            bottom: 20,
            nodeWidth: 8,
            nodeGap: 34,
            layoutIterations: 0,
            draggable: false,
            emphasis: { disabled: true },
            label: {
              color: colour("text"),
              rich: {
                name: { color: colour("text"), fontSize: 13, lineHeight: 17, width: 136, overflow: "truncate" },
                count: { color: colour("soft"), fontSize: 12, lineHeight: 16 },
              },
            },
            lineStyle: { color: "target", opacity: 0.35, curveness: 0.5 },
            data: [{ name: "read", itemStyle: { color: colour("soft") }, label: { show: false } }, ...nodes],
            links: chart.branches.map((branch, number) => ({
              source: "read",
              target: String(number),
              value: Math.max(branch.count, chart.read / 100),
            })),
          },
        ],
      };
    },

    course: (chart) => ({
      grid: { left: 4, right: 16, top: 44, bottom: 24, containLabel: true },
      legend: { top: 0, left: 0, type: "plain", textStyle: { color: colour("soft") }, icon: "roundRect", itemHeight: 4 },
      tooltip: {
        trigger: "axis",
        formatter: (points) =>
          note(`${exact(points[0].value[0])} s`, ...points.map((each) => `${each.seriesName}: ${exact(each.value[1])} ${chart.unit}`)),
      },
      xAxis: axis({ type: "value", name: "seconds", nameLocation: "middle", nameGap: 30, scale: true, axisLabel: { formatter: exact } }),
      yAxis: axis({ type: "log", axisLabel: { formatter: short } }),
      series: chart.series.map(({ name, points }, number) => ({
        type: "line",
        name,
        data: points.filter(([, rate]) => rate > 0),
        showSymbol: points.length < 30,
        symbolSize: 4,
        lineStyle: { width: 1.5 },
        itemStyle: { color: colour(`series-${(number % 8) + 1}`) },
      })),
    }),
  };

  const drawn = charts.map((chart) => {
    const element = document.getElementById(chart.id);
    return { chart, element, instance: echarts.init(element, null, { renderer: "svg" }), width: element.clientWidth };
  });
  const draw = ({ chart, instance, element }) => {
    const own = kinds[chart.kind](chart, element.clientWidth);
    const shared = common();
    instance.setOption({ ...shared, ...own, tooltip: { ...shared.tooltip, ...own.tooltip } }, { notMerge: true });
  };
  const redraw = () => drawn.forEach(draw);
  redraw();
  dark.addEventListener("change", redraw);
  // The tables are open where no chart is drawn: without scripts, and on paper, where nobody can open them.
  const tables = [...document.querySelectorAll("details")];
  const open = (state) => tables.forEach((each) => (each.open = state));
  open(false);
  addEventListener("beforeprint", () => {
    open(true);
    redraw();
  });
  addEventListener("afterprint", () => {
    open(false);
    redraw();
  });
  const observer = new ResizeObserver(() => {
    for (const each of drawn) {
      if (each.width !== each.element.clientWidth) {
        each.width = each.element.clientWidth;
        each.instance.resize();
        draw(each);
      }
    }
  });
  observer.observe(document.body);
})();
