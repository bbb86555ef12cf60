// The bar at the bottom: what is under the pointer, at once and always in the same place.

import { useEffect, useState } from "preact/hooks";
import { tidyPath } from "../format.ts";
import { listenDetails, type Details } from "../details.ts";

export function DetailsBar() {
  const [details, setDetails] = useState<Details | null>(null);
  useEffect(() => {
    listenDetails(setDetails);
    return () => listenDetails(null);
  }, []);
  return (
    <footer class="details" id="details" aria-live="off">
      {details
        ? <>
            <div class="details-name" title={details.name.slice(0, 4000)}><bdi>{details.name}</bdi></div>
            <div class="details-figures">
              {details.figures.map((text, i) => <span key={i} class={i < 2 ? "strong" : ""}>{text}</span>)}
              {details.module && <span class="muted"><bdi>{details.module}</bdi></span>}
              {details.where && <span class="muted"><bdi>{tidyPath(details.where)}</bdi></span>}
            </div>
          </>
        : <div class="muted">Point at anything for its full name and figures. Press <kbd>?</kbd> for the keys.</div>}
    </footer>
  );
}
