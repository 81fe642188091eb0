// What a step of the kubectl script is, what it is given, and which steps which kubectl can take.
import type { Kubectl } from './kubectl.ts'

export interface Trial {
  /** The administrator, in namespace `shop`. */
  readonly kubectl: Kubectl
  /** May read everything but secrets. */
  readonly viewer: Kubectl
  /** Writes a manifest and answers its path. */
  file(name: string, text: string): Promise<string>
}

export interface Step {
  readonly name: string
  /** Taken only by kubectls that have this. */
  readonly needs?: Ability
  run(trial: Trial): Promise<void>
}

interface AbilitySince {
  readonly from?: number
  readonly to?: number
  readonly because: string
}

/** Minor versions of kubectl, both ends included. */
export const ABILITIES = {
  'JSON from imperative create': { to: 31, because: 'from 1.32 on, create without -f sends protobuf' },
  'server-side strict validation': { from: 27, because: 'older ones check fields themselves, in words of their own' },
  'wait for a jsonpath': { from: 23, because: 'wait --for=jsonpath came with 1.23' },
  'wait for what is gone': { from: 27, because: 'old ones fail when the object is gone before they look' },
  '--subresource': { from: 24, because: 'get and patch --subresource came with 1.24' },
  events: { from: 23, because: 'events (then under alpha) came with 1.23, as a command of its own with 1.26' },
} as const satisfies Record<string, AbilitySince>
export type Ability = keyof typeof ABILITIES

export function canTake(step: Step, minor: number): boolean {
  if (!step.needs) return true
  const { from = 0, to = Number.POSITIVE_INFINITY }: AbilitySince = ABILITIES[step.needs]
  return from <= minor && minor <= to
}

/** The lines of a text, without the last, empty one. */
export const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '')
