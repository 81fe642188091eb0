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
  readonly from: number
  readonly because: string
}

/** From which minor version on kubectl has it. */
export const ABILITIES = {
  'server-side strict validation': { from: 27, because: 'older ones check fields themselves, in words of their own' },
  'wait for a jsonpath': { from: 23, because: 'wait --for=jsonpath came with 1.23' },
  'wait for what is gone': { from: 27, because: 'old ones fail when the object is gone before they look' },
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
