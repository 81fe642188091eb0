// Converts the form of a bulk run to a request, or explains why it cannot. Describes runs, and lists the actions on them.
import type { BulkRequest, BulkRun, BulkState } from '../../protocol.ts'
import type { StatusWord } from './claim-status.ts'
import { pluralize } from './format.ts'
import { readSize } from './quantity.ts'

export interface BulkForm {
  readonly kind: 'grow' | 'migrate'
  readonly namespace: string
  /** Names of claims, separated by spaces or commas. */
  readonly names: string
  readonly selector: string
  readonly mode: 'to' | 'by'
  readonly size: string
  readonly from: string
  readonly to: string
  readonly parallel: string
  readonly maxFailures: string
}

export function readBulkForm(form: BulkForm): { readonly request: BulkRequest } | { readonly problem: string } {
  const parallel = readCount(form.parallel, 1)
  const maxFailures = readCount(form.maxFailures, 0)
  if (parallel === undefined) return { problem: 'The number of claims in progress must be 1 or more.' }
  if (maxFailures === undefined) return { problem: 'The number of failures must be 0 or more.' }
  return form.kind === 'grow' ? readGrow(form, { parallel, maxFailures }) : readMigrate(form, { parallel, maxFailures })
}

interface Limits {
  readonly parallel: number
  readonly maxFailures: number
}

function readGrow(form: BulkForm, limits: Limits): ReturnType<typeof readBulkForm> {
  const names = form.names.split(/[\s,]+/).filter(Boolean)
  const selector = form.selector.trim()
  if (form.namespace === '') return { problem: 'Choose the namespace of the claims.' }
  if (names.length === 0 && selector === '') return { problem: 'Enter the names of claims or a selector.' }
  if (names.length > 0 && selector !== '') return { problem: 'Enter either names or a selector, not both.' }
  const size = readSize(form.size)
  if ('problem' in size) return size
  return {
    request: {
      kind: 'grow',
      namespace: form.namespace,
      ...(names.length > 0 ? { names } : { selector }),
      ...(form.mode === 'to' ? { to: size.size } : { by: size.size }),
      ...limits,
    },
  }
}

function readMigrate(form: BulkForm, limits: Limits): ReturnType<typeof readBulkForm> {
  if (form.to === '') return { problem: 'Choose the new attributes class.' }
  if (form.from === form.to) return { problem: 'The old and the new attributes class are the same.' }
  const selector = form.selector.trim()
  return {
    request: {
      kind: 'migrate',
      from: form.from,
      to: form.to,
      ...(form.namespace === '' ? {} : { namespace: form.namespace }),
      ...(selector === '' ? {} : { selector }),
      ...limits,
    },
  }
}

function readCount(text: string, min: number): number | undefined {
  const count = Number(text)
  return text.trim() !== '' && Number.isInteger(count) && count >= min ? count : undefined
}

/** Describes a run in one line. */
export function describeRequest(request: BulkRequest): string {
  const claims = 'names' in request && request.names ? pluralize(request.names.length, 'claim') : 'claims'
  const selection = request.selector === undefined ? '' : ` with ${request.selector}`
  const place = request.namespace === undefined ? 'all namespaces' : request.namespace
  if (request.kind === 'grow')
    return `Grow ${claims}${selection} in ${place} ${request.to === undefined ? `by ${request.by}` : `to ${request.to}`}`
  return `Move ${claims}${selection} in ${place} from ${request.from || 'no class'} to ${request.to}`
}

export const STATE_WORDS: Readonly<Record<BulkState, StatusWord>> = {
  running: { word: 'Running', tone: 'busy' },
  paused: { word: 'Paused', tone: 'wait' },
  done: { word: 'Done', tone: 'ok' },
  failed: { word: 'Failed', tone: 'bad' },
}

/** The actions that are possible for a run now. Volumes never shrink, so undoing a grow run only lowers unfulfilled requests. */
export function listActions({
  state,
  isUndo,
  counts,
  request,
}: Pick<BulkRun, 'state' | 'isUndo' | 'counts' | 'request'>): readonly BulkActionName[] {
  if (state === 'running') return ['pause']
  const changed = counts.unfinished + counts.failed + (request.kind === 'migrate' ? counts.done : 0)
  const undo: readonly BulkActionName[] = isUndo || changed === 0 ? [] : ['undo']
  return state === 'paused' ? ['resume', ...undo] : undo
}

export type BulkActionName = 'pause' | 'resume' | 'undo'
