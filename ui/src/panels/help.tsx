import { useEffect, useRef } from "preact/hooks";
import { kKeys } from "../keys.ts";

export function Help({ onClose }: { onClose: () => void }) {
  const close = useRef<HTMLButtonElement>(null);
  useEffect(() => close.current?.focus(), []);
  return (
    <div class="cover" onClick={onClose}>
      <div class="help" role="dialog" aria-modal="true" aria-label="Keys" onClick={(event) => event.stopPropagation()}>
        <header><h2>Keys</h2><button ref={close} onClick={onClose}>Close</button></header>
        <table><tbody>
          {kKeys.map(([keys, meaning]) => <tr key={keys}><th><kbd>{keys}</kbd></th><td>{meaning}</td></tr>)}
        </tbody></table>
        <p class="muted">Drag in the time panel to select a range. Drag with Ctrl to select a baseline for comparison. Double-click clears both.
          Click a frame to zoom into it; double-click it for its callers and callees. Ctrl or Shift with the mouse wheel zooms to any width.</p>
      </div>
    </div>
  );
}
