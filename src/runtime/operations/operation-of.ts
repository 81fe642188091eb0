// Builds the Operation of a key from its queue's state.
import { createHash } from 'node:crypto'
import { CLUSTER_OPERATIONS_NAMESPACE, COMPONENT_LABEL, OPERATION_LABEL } from '../../api/kinds/operation/operation.ts'
import type { Operation, OperationPhase } from '../../api/kinds/operation/operation-schema.ts'
import { timestamp } from '../../base/timestamps.ts'
import type { ObjectKey } from '../../client/object-key.ts'
import type { KeyState } from '../work-queue.ts'

/** An operation's name, such as `Provision`, and its object. */
export interface OperationSubject {
  readonly operation: string
  readonly object: {
    readonly apiVersion: string
    readonly kind: string
    readonly namespace?: string
    readonly name: string
    readonly uid?: string
  }
}

interface Owner {
  readonly component: string
  readonly process: string
  readonly name: string
}

export function operationOf(state: KeyState, subject: OperationSubject, owner: Owner): Operation {
  const { component, process, name } = owner
  const { object } = subject
  const { phase, reason } = phaseOf(state)
  const { operation = subject.operation, driverAnswer, waitsFor } = state.details ?? {}
  return {
    metadata: {
      name,
      namespace: object.namespace || CLUSTER_OPERATIONS_NAMESPACE,
      uid: uidOf(`${process} ${name} ${state.addedAtMs}`),
      creationTimestamp: timestamp(state.addedAtMs),
      labels: { [COMPONENT_LABEL]: component, [OPERATION_LABEL]: operation },
    },
    object: { ...object },
    component,
    process,
    operation,
    phase,
    ...(reason ? { reason } : {}),
    ...(state.message === undefined ? {} : { message: state.message }),
    attempts: state.attempts,
    started: timestamp(state.addedAtMs),
    ...(state.lastAttemptAtMs === undefined ? {} : { lastAttempt: timestamp(state.lastAttemptAtMs) }),
    ...(state.nextAtMs === undefined ? {} : { nextAttempt: timestamp(state.nextAtMs) }),
    ...(driverAnswer ? { driverAnswer: { ...driverAnswer } } : {}),
    ...(waitsFor ? { waitsFor: { ...waitsFor } } : {}),
  }
}

/** Returns the phase, and the reason of the last outcome or a default. The reason of a ready key is `Queued`. */
function phaseOf({ is, isRetry, details }: KeyState): { phase: OperationPhase; reason: string | undefined } {
  switch (is) {
    case 'running':
      return { phase: 'Running', reason: details?.reason }
    case 'ready':
      return { phase: 'Waiting', reason: 'Queued' }
    case 'stuck':
      return { phase: 'Waiting', reason: details?.reason ?? 'WaitingForChange' }
    case 'waiting':
      return isRetry
        ? { phase: 'Retrying', reason: details?.reason ?? 'AttemptFailed' }
        : { phase: 'Waiting', reason: details?.reason ?? 'WaitingForTime' }
  }
}

/** Longer names of objects are truncated, so that the operation's name is valid. */
const OBJECT_NAME_LENGTH_MAX = 200
/** Hexadecimal digits of the hash in a name. */
const NAME_HASH_LENGTH = 10

/** Returns `OBJECT.HASH`, where the hash is that of the process, the queue and the key. */
export function operationNameOf(owner: { process: string; queue: string }, key: ObjectKey, objectName: string): string {
  const prefix = objectName.slice(0, OBJECT_NAME_LENGTH_MAX).replace(/[^a-z0-9]+$/, '')
  const hash = hashOf(`${owner.process}\n${owner.queue}\n${key}`).slice(0, NAME_HASH_LENGTH)
  return `${prefix || 'operation'}.${hash}`
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex')

function uidOf(text: string): string {
  const hash = hashOf(text)
  return [
    hash.slice(0, 8),
    hash.slice(8, 12),
    `4${hash.slice(13, 16)}`,
    `8${hash.slice(17, 20)}`,
    hash.slice(20, 32),
  ].join('-')
}
