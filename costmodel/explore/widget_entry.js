// The same control in a notebook: Python sees every change and may make one.
export default {
  render({ model, el }) {
    const set = mount(el, model.get("settings"), (chosen) => {
      model.set("settings", chosen);
      model.save_changes();
    });
    model.on("change:settings", () => set(model.get("settings")));
  },
};
