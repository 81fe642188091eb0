// The conditions of a namespace that is being deleted, with the types and reasons of Kubernetes. Pure.
import type { Kind } from '../../api/kind.ts'
import type { Namespace } from '../../api/kinds/namespace/namespace-schema.ts'
import { timestamp } from '../../base/timestamps.ts'

export interface RemainingObject {
  readonly kind: Kind
  readonly name: string
  readonly finalizers: readonly string[]
}

export interface DeletionResult {
  /** Objects that a finalizer or a grace period retains. */
  readonly remaining: readonly RemainingObject[]
  /** Why objects could not be listed or deleted. */
  readonly errors: readonly Error[]
}

type Condition = NonNullable<NonNullable<Namespace['status']>['conditions']>[number]
export type ConditionChange = Condition & { readonly type: string }

interface State {
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
}

/** Returns the conditions that differ from the stored ones. */
export function conditionChanges(
  stored: readonly Condition[],
  result: DeletionResult,
  nowMs: number,
): readonly ConditionChange[] {
  return Object.entries(statesOf(result)).flatMap(([type, state]) => {
    const previous = stored.find((condition) => condition.type === type)
    const { status, reason, message } = state
    if (previous?.status === status && previous.reason === reason && previous.message === message) return []
    const transitionTime = previous?.status === status ? previous.lastTransitionTime : undefined
    return [{ type, ...state, lastTransitionTime: transitionTime ?? timestamp(nowMs) }]
  })
}

const falseState = (reason: string, message: string): State => ({ status: 'False', reason, message })
const trueState = (reason: string, message: string): State => ({ status: 'True', reason, message })

function statesOf({ remaining, errors }: DeletionResult): Readonly<Record<string, State>> {
  const hasFinalizers = remaining.some(({ finalizers }) => finalizers.length > 0)
  return {
    // The kinds are compiled in: neither discovery nor parsing can fail.
    NamespaceDeletionDiscoveryFailure: falseState('ResourcesDiscovered', 'All resources successfully discovered'),
    NamespaceDeletionGroupVersionParsingFailure: falseState(
      'ParsedGroupVersions',
      'All legacy kube types successfully parsed',
    ),
    NamespaceDeletionContentFailure:
      errors.length > 0
        ? trueState('ContentDeletionFailed', failureMessage(errors))
        : falseState('ContentDeleted', 'All content successfully deleted, may be waiting on finalization'),
    NamespaceContentRemaining:
      remaining.length > 0
        ? trueState('SomeResourcesRemain', remainingMessage(remaining))
        : falseState('ContentRemoved', 'All content successfully removed'),
    NamespaceFinalizersRemaining: hasFinalizers
      ? trueState('SomeFinalizersRemain', finalizersMessage(remaining))
      : falseState('ContentHasNoFinalizers', 'All content-preserving finalizers finished'),
  }
}

const LISTED_MAX = 5 // names of objects, and errors, in one message

function failureMessage(errors: readonly Error[]): string {
  const messages = [...new Set(errors.map(({ message }) => message))].sort()
  return `Failed to delete all resource types, ${errors.length} remaining: ${listOf(messages)}`
}

function remainingMessage(remaining: readonly RemainingObject[]): string {
  const counts = countsOf(remaining.map(({ kind }) => `${kind.plural}.${kind.group}`))
  const kinds = counts.map(([kind, count]) => `${kind} has ${count} resource instances`).join(', ')
  const names = remaining.map(({ kind, name }) => `${kind.plural}/${name}`).sort()
  return `Some resources are remaining: ${kinds} (${listOf(names)})`
}

function finalizersMessage(remaining: readonly RemainingObject[]): string {
  const counts = countsOf(remaining.flatMap(({ finalizers }) => finalizers))
  const finalizerCounts = counts.map(([finalizer, count]) => `${finalizer} in ${count} resource instances`).join(', ')
  return `Some content in the namespace has finalizers remaining: ${finalizerCounts}`
}

function countsOf(names: readonly string[]): [name: string, count: number][] {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1))
}

const listOf = (texts: readonly string[]): string =>
  texts.slice(0, LISTED_MAX).join(', ') + (texts.length > LISTED_MAX ? ', …' : '')
