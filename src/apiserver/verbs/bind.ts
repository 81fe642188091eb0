// The endpoints below an object that are verbs rather than parts of it: a pod's binding and eviction, and
// the step that lets a namespace go. What /status may change is in update-object.ts.
import { FieldErrors } from '../../api/field-errors.ts'
import { binding } from '../../api/kinds/pod/pod-schema.ts'
import { eviction } from '../../api/kinds/shared/delete-options-schema.ts'
import { validateMeta } from '../../api/meta.ts'
import { badRequest, conflict, invalid, notFound } from '../../api/status-error.ts'
import { clone } from '../../base/clone.ts'
import type { TransactionView } from '../../store/index.ts'
import { checkKind, decodeAs, type RequestBody } from '../http/body.ts'
import { type ApiAnswer, jsonAnswer } from '../http/exchange.ts'
import { parseDeleteOptions, type WriteOptions } from '../http/options.ts'
import { encodeStored } from '../objects/stored-object.ts'
import {
  type Decided,
  keyOf,
  type ObjectDeps,
  ruleContext,
  timestamp,
  transactOne,
  type WriteTarget,
} from '../objects/write-deps.ts'
import { deleteObject } from './delete.ts'

export interface SubresourceCall {
  readonly target: WriteTarget
  readonly body: RequestBody
  readonly options: WriteOptions
}

/** POST handlers by GROUP/PLURAL/SUBRESOURCE. */
export const CREATE_SUBRESOURCES: Readonly<
  Record<string, (deps: ObjectDeps, call: SubresourceCall) => Promise<ApiAnswer>>
> = {
  '/pods/binding': bindPod,
  '/pods/eviction': evictPod,
}

const success = (code = 201): ApiAnswer =>
  jsonAnswer(code, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code })

/** Puts a pod on a node, once. */
async function bindPod(deps: ObjectDeps, { target, body, options }: SubresourceCall): Promise<ApiAnswer> {
  checkKind(body, 'Binding')
  const { object: wanted } = decodeAs<any>(body, binding, 'Binding in version "v1"', options.fieldValidation)
  checkBinding(target, wanted)
  await transactOne(deps, target, (view) => decideBinding(deps, target, wanted, view))
  return success()
}

export function checkBinding(target: WriteTarget, wanted: any): void {
  if (wanted.metadata?.name && wanted.metadata.name !== target.name) {
    throw badRequest(
      `the name of the binding (${wanted.metadata.name}) does not match the name on the URL (${target.name})`,
    )
  }
  if (!wanted.target?.name) throw badRequest('Binding: target.name is required: the node the pod goes to')
  if (wanted.target.kind && wanted.target.kind !== 'Node') {
    throw badRequest(`Binding: target.kind must be Node, not ${JSON.stringify(wanted.target.kind).slice(0, 100)}`)
  }
}

/** The transaction of a binding. */
export function decideBinding(deps: ObjectDeps, target: WriteTarget, wanted: any, view: TransactionView): Decided {
  const entry = view.get(keyOf(target))
  if (!entry) throw notFound(target.resource, target.name)
  const old: any = deps.objects.decode(entry)
  const refuse = (why: string) => conflict(target.resource, target.name, why)
  if (wanted.metadata?.uid && wanted.metadata.uid !== old.metadata.uid) {
    throw refuse(
      `Precondition failed: UID in precondition: ${wanted.metadata.uid}, UID in object meta: ${old.metadata.uid}`,
    )
  }
  if (old.metadata.deletionTimestamp) throw refuse(`pod ${target.name} is being deleted, cannot be assigned to a host`)
  if (old.spec.nodeName)
    throw refuse(`pod ${target.name} is already assigned to node ${JSON.stringify(old.spec.nodeName)}`)
  if (old.spec.schedulingGates?.length > 0) throw refuse(`pod ${target.name} has non-empty .spec.schedulingGates`)
  const next = clone(old)
  next.spec.nodeName = wanted.target.name
  if (next.metadata.generation > 0) next.metadata.generation += 1
  if (wanted.metadata?.annotations)
    next.metadata.annotations = { ...next.metadata.annotations, ...wanted.metadata.annotations }
  next.status = { ...next.status, conditions: scheduled(next.status?.conditions ?? [], deps.clock.nowMs()) }
  const errors = new FieldErrors()
  validateMeta(target.resource.kind, next.metadata, errors)
  target.resource.kind.validate(next, errors, ruleContext(deps), old)
  if (errors.any) throw invalid(target.resource.kind, target.name, errors.list)
  const value = encodeStored(next)
  return {
    writes: [{ put: keyOf(target), value }],
    written: { value, revision: 0, created: false, deleted: false, warnings: [] },
  }
}

function scheduled(conditions: readonly any[], nowMs: number): any[] {
  const condition = {
    type: 'PodScheduled',
    status: 'True',
    lastProbeTime: undefined,
    lastTransitionTime: timestamp(nowMs),
  }
  return [...conditions.filter(({ type }) => type !== 'PodScheduled'), condition]
}

/** Asks a pod to go. There are no disruption budgets here, so the answer is always yes. */
async function evictPod(deps: ObjectDeps, { target, body }: SubresourceCall): Promise<ApiAnswer> {
  checkKind(body, 'Eviction')
  const value = (body.as(eviction).value ?? {}) as Record<string, any>
  const name = value.metadata?.name
  if (name && name !== target.name) {
    throw badRequest(`name in URL does not match name in Eviction object: ${JSON.stringify(name).slice(0, 100)}`)
  }
  const options = parseDeleteOptions(value.deleteOptions ?? undefined, new URLSearchParams())
  await deleteObject(deps, { ...target, dryRun: target.dryRun || options.dryRun }, options)
  return success()
}

/** What PUT …/finalize may change of a namespace. */
export function mergeFinalize(asked: any, old: any): any {
  const next = clone(old)
  const finalizers = asked.spec?.finalizers ?? []
  if (finalizers.length > 0) next.spec = { ...next.spec, finalizers: clone(finalizers) }
  else if (next.spec) delete next.spec.finalizers
  return next
}
