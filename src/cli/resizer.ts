// `stowage resizer`: changes the volumes of a CSI driver. How it finds driver and server is run-sidecar.ts; what a term of
// work is made of is resizer-work.ts.
import { createModifyingMetrics } from '../controllers/modifying/index.ts'
import { runSidecar } from '../processes/run-sidecar.ts'
import type { SidecarRun } from '../processes/sidecar.ts'
import type { ResizerSettings } from './resizer-flags.ts'
import { changeVolumes, checkAbleToChange } from './resizer-work.ts'

export interface ResizerRun extends SidecarRun {
  readonly settings: ResizerSettings
}

export async function runResizer(run: ResizerRun): Promise<void> {
  await runSidecar(run, {
    userAgent: 'stowage-resizer',
    checkAble: checkAbleToChange,
    leaseName: ({ facts, node }) => `external-resizer-${leaseNameOf(facts.name)}${node ? `-${node.name}` : ''}`,
    prepare(registry) {
      const modifyingMetrics = createModifyingMetrics(registry)
      return (given, term) => changeVolumes({ ...run, ...given, modifyingMetrics }, term)
    },
  })
}

/** As other resizers make it, so that they and this one share a lease. */
function leaseNameOf(driverName: string): string {
  const name = driverName.replace(/[^a-zA-Z0-9-]/g, '-')
  return name.endsWith('-') ? `${name}X` : name
}
