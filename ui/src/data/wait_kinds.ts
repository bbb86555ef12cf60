// What threads wait for, in the order of the data's numbers. Written by scripts/write-tables from the tables of src/analysis; edit those.

export const kWaitKinds = [
  { id: "lock", name: "lock", order: 0, light: "#c8401a", dark: "#e8623a" },
  { id: "condition", name: "condition", order: 1, light: "#e58b6b", dark: "#c98a72" },
  { id: "futex", name: "futex", order: 2, light: "#a8623f", dark: "#b0714e" },
  { id: "network_receive", name: "net receive", order: 6, light: "#4fb99f", dark: "#3f8f7c" },
  { id: "network_send", name: "net send", order: 5, light: "#0f8f73", dark: "#1fa98a" },
  { id: "disk", name: "disk", order: 3, light: "#7a5a1e", dark: "#b08a3e" },
  { id: "timer", name: "timer", order: 9, light: "#9b86b8", dark: "#8d7bab" },
  { id: "poll", name: "poll", order: 12, light: "#cfd8e3", dark: "#3a4350" },
  { id: "page_fault", name: "page fault", order: 4, light: "#b59a35", dark: "#cdb65a" },
  { id: "pipe", name: "pipe", order: 7, light: "#8fd0bf", dark: "#5c8f84" },
  { id: "child", name: "child process", order: 8, light: "#63808c", dark: "#6f8b97" },
  { id: "accelerator", name: "accelerator", order: 14, light: "#2f6fb0", dark: "#5a93cf" },
  { id: "other", name: "other", order: 10, light: "#8a8f98", dark: "#7b818b" },
  { id: "unknown", name: "unknown", order: 11, light: "#b3b7bd", dark: "#5d636d" },
  { id: "wakeup", name: "wake-up", order: 13, light: "#d3c25e", dark: "#a1933f" },
];
