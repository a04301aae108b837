// Reachable on this machine only, and without anything that would ask another one.
module.exports = {
    uiHost: "127.0.0.1",
    flowFile: "flows.json",
    credentialSecret: false,
    telemetry: { enabled: false, updateNotification: false },
    disableEditor: false,
    runtimeState: { enabled: false, ui: false },
    diagnostics: { enabled: false, ui: false },
    externalModules: { palette: { allowInstall: false, allowUpload: false }, modules: { allowInstall: false } },
    logging: { console: { level: "warn", metrics: false, audit: false } },
    editorTheme: {
        tours: false,
        palette: { editable: false, catalogues: [] },
        projects: { enabled: false },
        codeEditor: { lib: "monaco" },
        multiplayer: { enabled: false },
    },
}
