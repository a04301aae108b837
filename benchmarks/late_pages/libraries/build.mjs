// Bundles every page in this folder: node build.mjs OUTPUT_FOLDER
import { build } from "esbuild";
import { readFile } from "node:fs/promises";
import { compile } from "svelte/compiler";

const svelte = {
  name: "svelte",
  setup: (build) =>
    build.onLoad({ filter: /\.svelte$/ }, async ({ path }) => {
      const { js } = compile(await readFile(path, "utf8"), { filename: path, generate: "client", css: "injected" });
      return { contents: js.code };
    }),
};
const react18 = { react: "react18", "react-dom": "react-dom18" };
const plain = "vue2 vue3 svelte preact htmx gsap motion alpine jquery socketio lit rxjs lodash axios idb".split(" ");
const pages = [
  ...plain.map((name) => [name, `${name}.js`, {}]),
  ["react18", "react.jsx", react18],
  ["react19", "react.jsx", {}],
  ["react_query", "react_query.jsx", {}],
];
for (const [name, entry, alias] of pages) {
  await build({
    entryPoints: [entry],
    outfile: `${process.argv[2]}/${name}.js`,
    bundle: true,
    alias,
    plugins: [svelte],
    conditions: ["browser"],
    define: { "process.env.NODE_ENV": '"production"', __VUE_OPTIONS_API__: "true", __VUE_PROD_DEVTOOLS__: "false",
      __VUE_PROD_HYDRATION_MISMATCH_DETAILS__: "false" },
    logLevel: "warning",
  });
}
