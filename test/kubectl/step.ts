// The type of a step of the kubectl script, its context, and the kubectl versions that can run it.
import type { Kubectl } from './kubectl.ts'

export interface StepContext {
  /** The administrator, in namespace `shop`. */
  readonly kubectl: Kubectl
  /** May read everything but secrets. */
  readonly viewer: Kubectl
  /** Writes a manifest and returns its path. */
  file(name: string, text: string): Promise<string>
}

export interface Step {
  readonly name: string
  /** Run only by kubectl versions with this feature. */
  readonly needs?: Ability
  run(context: StepContext): Promise<void>
}

interface AbilitySince {
  readonly from: number
  readonly because: string
}

/** The minor version that introduced each feature. */
export const ABILITIES = {
  'server-side strict validation': { from: 27, because: 'older versions validate fields themselves, in other words' },
  'wait for a jsonpath': { from: 23, because: 'wait --for=jsonpath came with 1.23' },
  'wait for what is gone': { from: 27, because: 'older versions fail if the object is deleted before they look' },
  '--subresource': { from: 24, because: 'get and patch --subresource came with 1.24' },
  'auth whoami': { from: 28, because: 'auth whoami asks for v1 of the API from 1.28 on' },
  events: { from: 23, because: 'events (then under alpha) came with 1.23, as a command of its own with 1.26' },
} as const satisfies Record<string, AbilitySince>
export type Ability = keyof typeof ABILITIES

export function canTake(step: Step, minor: number): boolean {
  return !step.needs || minor >= ABILITIES[step.needs].from
}

/** The lines of a text, without the last, empty one. */
export const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '')
