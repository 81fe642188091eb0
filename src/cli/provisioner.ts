// `stowage provisioner`: makes and deletes the volumes of a CSI driver. How it finds driver and server is run-sidecar.ts;
// what a term of work is made of is provisioner-work.ts.
import { createCapacityMetrics } from '../controllers/capacity/index.ts'
import type { NodeDeployment } from '../controllers/provisioning/csi/index.ts'
import { createProvisioningMetrics } from '../controllers/provisioning/index.ts'
import type { ServedNode } from '../controllers/volume-changes/index.ts'
import type { DriverFacts } from '../csi/index.ts'
import { runSidecar } from '../processes/run-sidecar.ts'
import { readSecretDir } from '../processes/secret-dir.ts'
import type { SidecarRun } from '../processes/sidecar.ts'
import type { ProvisionerSettings } from './provisioner-flags.ts'
import { provideVolumes } from './provisioner-work.ts'

export interface ProvisionerRun extends SidecarRun {
  readonly settings: ProvisionerSettings
}

export async function runProvisioner(run: ProvisionerRun): Promise<void> {
  const { settings } = run
  if (settings.provisionerSecretDir) readSecretDir(settings.provisionerSecretDir) // a wrong one is told at once
  await runSidecar(run, {
    userAgent: 'stowage-provisioner',
    checkAble: checkAbleToMakeVolumes,
    leaseName: ({ facts }) => facts.name.replaceAll('/', '-'),
    prepare(registry) {
      const provisioningMetrics = createProvisioningMetrics(registry)
      const capacityMetrics = createCapacityMetrics(registry)
      return ({ node: served, ...given }, term) => {
        const node = served && deployedOn(served, settings)
        return provideVolumes(
          { ...run, ...given, node, gates: settings.gates, provisioningMetrics, capacityMetrics },
          term,
        )
      }
    },
  })
}

function checkAbleToMakeVolumes(facts: DriverFacts, address: string): void {
  if (facts.controller.has('CREATE_DELETE_VOLUME')) return
  throw new Error(
    `The CSI driver ${facts.name} at ${address} cannot make volumes: it does not report the controller capability ` +
      'CREATE_DELETE_VOLUME. Run no provisioner beside it.',
  )
}

const deployedOn = (node: ServedNode, settings: ProvisionerSettings): NodeDeployment => ({
  ...node,
  immediateBinding: settings.nodeDeploymentImmediateBinding,
  baseDelayMs: settings.nodeDeploymentBaseDelay,
  maxDelayMs: settings.nodeDeploymentMaxDelay,
})
