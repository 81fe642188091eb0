// POST pods/NAME/eviction: deletes the pod. PodDisruptionBudgets are not supported.
import { eviction } from '../../api/kinds/shared/delete-options-schema.ts'
import { badRequest } from '../../api/status-error.ts'
import { checkKind, type RequestBody } from '../http/body.ts'
import { parseDeleteOptions } from '../http/options.ts'
import type { AnyObject } from '../objects/object-deps.ts'
import { NO_WARNINGS, type WriteTarget, type WriteVerb } from '../objects/write-verb.ts'

export function evictVerb(target: WriteTarget, body: RequestBody): WriteVerb {
  checkKind(body, 'Eviction')
  const { metadata, deleteOptions }: AnyObject = body.readAs(eviction).value ?? {}
  const name = metadata?.name
  if (name && name !== target.name) {
    throw badRequest(`name in URL does not match name in Eviction object: ${JSON.stringify(name).slice(0, 100)}`)
  }
  const options = parseDeleteOptions(deleteOptions ?? undefined, new URLSearchParams())
  const dryRun = target.dryRun || options.dryRun
  return { do: 'delete', target: { ...target, dryRun }, options, warnings: NO_WARNINGS }
}
