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
  readonly remainingObjects: readonly RemainingObject[]
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
  storedConditions: readonly Condition[],
  result: DeletionResult,
  nowMs: number,
): readonly ConditionChange[] {
  return Object.entries(statesOf(result)).flatMap(([type, state]) => {
    const previousCondition = storedConditions.find((condition) => condition.type === type)
    const { status, reason, message } = state
    if (
      previousCondition?.status === status &&
      previousCondition.reason === reason &&
      previousCondition.message === message
    )
      return []
    const transitionTime = previousCondition?.status === status ? previousCondition.lastTransitionTime : undefined
    return [{ type, ...state, lastTransitionTime: transitionTime ?? timestamp(nowMs) }]
  })
}

const falseState = (reason: string, message: string): State => ({ status: 'False', reason, message })
const trueState = (reason: string, message: string): State => ({ status: 'True', reason, message })

function statesOf({ remainingObjects, errors }: DeletionResult): Readonly<Record<string, State>> {
  const hasFinalizers = remainingObjects.some(({ finalizers }) => finalizers.length > 0)
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
      remainingObjects.length > 0
        ? trueState('SomeResourcesRemain', remainingMessage(remainingObjects))
        : falseState('ContentRemoved', 'All content successfully removed'),
    NamespaceFinalizersRemaining: hasFinalizers
      ? trueState('SomeFinalizersRemain', finalizersMessage(remainingObjects))
      : falseState('ContentHasNoFinalizers', 'All content-preserving finalizers finished'),
  }
}

const LIST_LENGTH_MAX = 5 // names of objects, and errors, in one message

function failureMessage(errors: readonly Error[]): string {
  const messages = [...new Set(errors.map(({ message }) => message))].sort()
  return `Failed to delete all resource types, ${errors.length} remaining: ${joinFirst(messages)}`
}

function remainingMessage(remainingObjects: readonly RemainingObject[]): string {
  const counts = countsOf(remainingObjects.map(({ kind }) => `${kind.plural}.${kind.group}`))
  const kinds = counts.map(([kind, count]) => `${kind} has ${count} resource instances`).join(', ')
  const names = remainingObjects.map(({ kind, name }) => `${kind.plural}/${name}`).sort()
  return `Some resources are remaining: ${kinds} (${joinFirst(names)})`
}

function finalizersMessage(remainingObjects: readonly RemainingObject[]): string {
  const counts = countsOf(remainingObjects.flatMap(({ finalizers }) => finalizers))
  const finalizerCounts = counts.map(([finalizer, count]) => `${finalizer} in ${count} resource instances`).join(', ')
  return `Some content in the namespace has finalizers remaining: ${finalizerCounts}`
}

function countsOf(names: readonly string[]): [name: string, count: number][] {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1))
}

const joinFirst = (texts: readonly string[]): string =>
  texts.slice(0, LIST_LENGTH_MAX).join(', ') + (texts.length > LIST_LENGTH_MAX ? ', …' : '')
