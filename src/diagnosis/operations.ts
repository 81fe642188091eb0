// Describes the operations that Stowage components report about an object: which component runs them, the result of the
// last attempt, and when the next one starts.
import type { Operation } from '../api/kinds/operation/operation-schema.ts'
import { ageSeconds, type Cluster } from './cluster.ts'
import { type Diagnosis, type Fix, fix, type Subject } from './diagnosis.ts'
import { type CsiOperation, FINALITY_TEXTS, finalityOf } from './finality.ts'
import { formatAge } from './format-age.ts'

/** Returns the operations on the object with one of the names, failed ones first. */
export function findOperations(cluster: Cluster, subject: Subject, names: readonly string[]): readonly Operation[] {
  const operations = cluster.operationsOf(subject).filter(({ operation }) => names.includes(operation))
  return [...operations.filter(hasFailed), ...operations.filter((operation) => !hasFailed(operation))]
}

/** Whether the last attempt failed. The reason or the driver's error response stays set while the next attempt is running. */
export const hasFailed = ({ phase, driverAnswer, reason }: Operation): boolean =>
  phase === 'Retrying' ||
  driverAnswer !== undefined ||
  (phase === 'Running' && reason !== undefined && !reason.startsWith('Waiting'))

/** `csiOperation` determines what the code of the driver's error response means. */
export function diagnoseOperation(operation: Operation, csiOperation: CsiOperation, { snapshot }: Cluster): Diagnosis {
  const { driverAnswer, reason, phase } = operation
  const finality = driverAnswer && finalityOf(driverAnswer.code, csiOperation)
  const sentences = [
    describeAttempts(operation, snapshot.nowMs),
    ...(driverAnswer
      ? [`${driverAnswer.method} of ${driverAnswer.driver || 'the driver'} returned ${driverAnswer.code}`]
      : []),
    ...(finality ? [FINALITY_TEXTS[finality]] : []),
    ...describeNextAttempt(operation, snapshot.nowMs),
  ]
  const fixes = retryFixes(operation)
  return {
    subject: { kind: 'Component', name: operation.component },
    state: hasFailed(operation) ? 'failed' : 'waiting',
    reason: driverAnswer ? 'LastAnswer' : reason || `Operation${phase}`,
    message: sentences.join('; '),
    numbers: {
      operation: operation.operation,
      phase,
      process: operation.process,
      ...attemptNumbers(operation, snapshot.nowMs),
      ...(driverAnswer ? { method: driverAnswer.method, code: driverAnswer.code } : {}),
      ...(driverAnswer?.driver ? { driver: driverAnswer.driver } : {}),
      ...(finality ? { isFinal: String(finality !== 'unfinished') } : {}),
    },
    ...(fixes.length > 0 ? { fixes } : {}),
  }
}

/** Adds the attempts of the component, and the time of the next one, to a failure that a condition or event reports. */
export function withAttempts(failure: Diagnosis, operation: Operation, { snapshot }: Cluster): Diagnosis {
  const sentences = [failure.message, ...describeNextAttempt(operation, snapshot.nowMs)]
  const fixes = [...(failure.fixes ?? []), ...retryFixes(operation)]
  return {
    ...failure,
    message: sentences.join('; '),
    numbers: { ...failure.numbers, component: operation.component, ...attemptNumbers(operation, snapshot.nowMs) },
    ...(fixes.length > 0 ? { fixes } : {}),
  }
}

/** Returns the number of attempts, the age of the last one and the time until the next one. */
export function attemptNumbers(operation: Operation, nowMs: number): Record<string, number> {
  const { attempts = 0, lastAttempt, nextAttempt } = operation
  const age = ageSeconds(lastAttempt, nowMs)
  return {
    attempts,
    ...(age === undefined ? {} : { lastAttemptAgeSeconds: age }),
    ...(nextAttempt === undefined ? {} : { nextAttemptSeconds: secondsUntil(nextAttempt, nowMs) }),
  }
}

const secondsUntil = (time: string, nowMs: number): number =>
  Math.max(0, Math.round((Date.parse(time) - nowMs) / 1000)) || 0

function describeAttempts({ operation, phase, attempts = 0, message, lastAttempt }: Operation, nowMs: number): string {
  const age = ageSeconds(lastAttempt, nowMs)
  const ago = age === undefined ? '' : ` ${formatAge(age)} ago`
  switch (phase) {
    case 'Running':
      return `${operation}: attempt ${attempts} started${ago}${message ? `, after: ${message}` : ''}`
    case 'Retrying':
      return `${operation}: attempt ${attempts} failed${ago}${message ? `: ${message}` : ''}`
    case 'Waiting':
      return attempts === 0
        ? `${operation}: the first attempt has not started`
        : `${operation}: attempt ${attempts} ended${ago}${message ? `: ${message}` : ''}`
  }
}

function describeNextAttempt({ phase, nextAttempt, waitsFor }: Operation, nowMs: number): string[] {
  if (phase === 'Running') return []
  if (nextAttempt !== undefined) return [`the next attempt starts in ${secondsUntil(nextAttempt, nowMs)} s`]
  if (waitsFor) return [`a change of the ${waitsFor.kind} ${waitsFor.name} starts the next attempt`]
  return []
}

/** The names that `stowage retry` accepts for the kinds whose operations are diagnosed. */
const RETRY_KINDS: Readonly<Record<string, string>> = {
  PersistentVolumeClaim: 'pvc',
  PersistentVolume: 'pv',
  Pod: 'pod',
  VolumeAttachment: 'va',
  Node: 'node',
}

function retryFixes({ object, nextAttempt }: Operation): readonly Fix[] {
  const kind = RETRY_KINDS[object.kind ?? '']
  if (kind === undefined || nextAttempt === undefined) return []
  const namespace = object.namespace ? ` -n ${object.namespace}` : ''
  return [fix('after removing the cause, retry at once', `stowage retry ${kind}/${object.name}${namespace}`)]
}
