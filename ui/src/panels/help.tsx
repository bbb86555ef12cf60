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
        <p class="muted">Drag over the time panel for a range, with Ctrl for a baseline to compare it with; double-click takes them back.
          Click a frame to zoom, double-click it for its callers and callees; Ctrl or Shift with the wheel zooms freely.</p>
      </div>
    </div>
  );
}
