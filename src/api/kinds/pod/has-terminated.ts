// Whether a pod has terminated: its containers do not run and are not started again, so it no longer uses its volumes.
import type { Pod } from './pod-schema.ts'

export const hasTerminated = ({ status }: Readonly<Pod>): boolean =>
  status?.phase === 'Succeeded' || status?.phase === 'Failed'
