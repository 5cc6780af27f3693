// One page, one control: the address holds its state, so a link shows the same view.
const read = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
const set = mount(document.getElementById("calculator"), START, (chosen) => {
  history.replaceState(null, "", `#${new URLSearchParams(chosen)}`);
});
set(read());
addEventListener("hashchange", () => set(read()));
