// Defines a step of the kubectl script, its context, and which kubectl versions support it.
import type { Kubectl } from './kubectl.ts'

export interface StepContext {
  /** kubectl of the administrator, in namespace `shop`. */
  readonly kubectl: Kubectl
  /** kubectl of the user stowage-viewer, who can read claims but not secrets. */
  readonly viewer: Kubectl
  /** kubectl without credentials. */
  readonly anonymous: Kubectl
  /** Writes a manifest and returns its path. */
  file(name: string, text: string): Promise<string>
}

export interface Step {
  readonly name: string
  /** The step runs only with kubectl versions that have this feature. */
  readonly needs?: Feature
  run(context: StepContext): Promise<void>
}

interface FeatureSupport {
  readonly minor: number
  readonly reason: string
}

/** The minor version that introduced each feature. */
const FEATURES = {
  'server-side strict validation': {
    minor: 27,
    reason: 'older versions validate fields on the client, with other messages',
  },
  'wait for a jsonpath': { minor: 23, reason: '1.23 introduced wait --for=jsonpath' },
  'wait for a deleted object': { minor: 27, reason: 'older versions fail if the object is already deleted' },
  '--subresource': { minor: 24, reason: '1.24 introduced --subresource of get and patch' },
  'auth whoami': { minor: 28, reason: '1.28 is the first version whose auth whoami uses authentication.k8s.io/v1' },
  'create token': { minor: 24, reason: '1.24 introduced create token' },
  events: { minor: 23, reason: '1.23 introduced alpha events, and 1.26 events' },
} as const satisfies Record<string, FeatureSupport>
type Feature = keyof typeof FEATURES

export function isSupported(step: Step, minor: number): boolean {
  return !step.needs || minor >= FEATURES[step.needs].minor
}

/** Returns the lines of a text that are not empty. */
export const linesOf = (text: string): string[] => text.split('\n').filter((line) => line !== '')
