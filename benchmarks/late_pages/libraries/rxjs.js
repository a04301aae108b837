// Like a search field: waits until the input pauses, then sends the request.
import { debounceTime, from, Subject, switchMap } from "rxjs";
import { delay, late, plain, show } from "./common.js";

const asked = new Subject();
asked.pipe(debounceTime(delay), switchMap(() => from(late(100)))).subscribe(() => show("FINAL"));
plain(() => asked.next());
