// Lists the tests that fail on a server that responds like a stock API server, because they test features that only a Stowage
// server has. The vitest project `stock` runs them too: setup.ts expects each to fail, and fails if an entry matches no test.
// An entry must be removed once its test passes.

export interface Exception {
  readonly file: string
  /** Why the tests cannot pass on such a server. */
  readonly message: string
  /** The names of tests, or of suites whose tests all fail: `suite > test`. */
  readonly tests: readonly string[]
}

const TRANSACTION =
  'Expects several writes in one transaction. On a stock server they are single writes, which other tests of the file cover.'
const AMOUNTS =
  'Claims with iops and throughput need a Stowage server: a stock server rejects these amounts on volumes and in the status of claims.'
const QUOTAS = 'A stock server maintains its quotas itself; there the quota controller does nothing.'

export const EXCEPTIONS: readonly Exception[] = [
  {
    file: 'src/controllers/attaching/attaching.test.ts',
    message: TRANSACTION,
    tests: [
      'a lost node > SYS-18 keeps its volumes if it recovers before a force-detach is committed',
      'status.volumesAttached of a node > SYS-18 keeps a volume whose mount is reported during the detach',
    ],
  },
  {
    file: 'src/controllers/expanding/expanding.test.ts',
    message: TRANSACTION,
    tests: [
      "expanding a claim > writes the claim's steps with its resourceVersion as a precondition, and failures and the volume without one",
    ],
  },
  {
    file: 'src/controllers/modifying/crashes.test.ts',
    message: AMOUNTS,
    tests: [
      "after a crash at any call (atomic commits: true) > VAC-5 VAC-7 'modifies iops'",
      "after a crash at any call (atomic commits: true) > VAC-5 VAC-7 'modifies class and iops and rolls bac…'",
    ],
  },
  {
    file: 'src/controllers/modifying/modifying.test.ts',
    message: TRANSACTION,
    tests: [
      "modifying a bound claim's class > VAC-5 calls the driver with the parameters of the class and updates the volume and the claim",
      'a driver that fails > does not write a repeated error again',
      'writes that fail > VAC-5 reads the claim again after a conflict, and records no failure',
      'writes that fail > VAC-5 repeats the call if the server fails before the result is saved',
    ],
  },
  {
    file: 'src/controllers/modifying/provisioned-io.test.ts',
    message: AMOUNTS,
    tests: [
      'iops and throughput of a bound claim',
      'a driver that fails',
      "modifying a class together with the claim's own amounts",
    ],
  },
  {
    file: 'src/controllers/modifying/scenarios.test.ts',
    message: AMOUNTS,
    tests: [
      'the modifying controller with feature gates > VAC-12 PIO-1 ignores the fields of disabled gates with VolumeAttributesClass=false',
      'the modifying controller with feature gates > VAC-12 PIO-1 ignores the fields of disabled gates with VolumeProvisionedIO=false',
      'the modifying controller with feature gates > VAC-12 PIO-1 ignores the fields of disabled gates with VolumeAttributesClass=false,VolumeProvisionedIO=false',
      'the modifying controller with feature gates > PIO-1 rejects a class that contradicts the current IO amounts, even if VolumeProvisionedIO is disabled',
      'quota > PIO-7 rejects an increase beyond the quota, and releases a decrease after the driver confirms it',
      'metrics > VAC-11 PIO-9 count calls and failures, for classes and for amounts',
    ],
  },
  {
    file: 'src/controllers/modifying/scenarios.test.ts',
    message: TRANSACTION,
    tests: ['many claims > VAC-14 modifies 500 claims without errors, within the worker limit'],
  },
  {
    file: 'src/controllers/provisioning/bind-on-save.test.ts',
    message: TRANSACTION,
    tests: [
      'bindsOnSave > PROV-5 creates and binds the volume and removes the intent in one commit',
      'bindsOnSave > VAC-4 binds a claim with an attributes class in one commit',
      "bindsOnSave > VAC-12 records no current class if the volume was created without the claim's class",
    ],
  },
  {
    file: 'src/controllers/provisioning/csi/csi-provisioner-attributes.test.ts',
    message: AMOUNTS,
    tests: [
      "attributes of created volumes > PIO-1 passes iops and throughput of the claim and records them in the volume's capacity",
      "attributes of created volumes > PIO-2 PIO-4 records iops and throughput from on-create defaults in the volume's capacity",
      "attributes of created volumes > PIO-2 PIO-4 records iops and throughput from storage class parameters in the volume's capacity",
      "attributes of created volumes > PIO-2 PIO-4 records iops and throughput from an attributes class in the volume's capacity",
    ],
  },
  {
    file: 'src/controllers/provisioning/provisioning-controllers.test.ts',
    message: 'Only a transaction can include the lease of the leader, and so reject a write of its predecessor.',
    tests: [
      'createProvisioningControllers with leader election > PROV-12 rejects the PV of a leader that was replaced during a call, and lets its successor create it',
    ],
  },
  {
    file: 'src/controllers/provisioning/reconcile-claim.test.ts',
    message: TRANSACTION,
    tests: [
      'reconcileClaim after a failed attempt > PROV-12 reads the claim after a conflict instead of retrying with a stale cache',
    ],
  },
  {
    file: 'src/controllers/quota/quota-controller.test.ts',
    message: QUOTAS,
    tests: [
      'createQuotaController > computes the usage of a quota that is created after the objects',
      'createQuotaController > computes the usage of keys that are added to a quota',
      'createQuotaController > recounts if the quota is charged during the count',
      'createQuotaController > verifies periodically and finds no difference',
      'createQuotaController > logs, counts and repairs a wrong usage',
      'createQuotaController > restores an edited status',
      'createQuotaController > skips a quota that changes during verification',
    ],
  },
]
