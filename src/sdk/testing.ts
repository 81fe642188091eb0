// The public API for tests of provisioners: `import { testProvisioner } from '@stowage/provisioner/testing'`.
export { type ConformanceOptions, testProvisioner } from './conformance.ts'
export {
  startTestCluster,
  type TestClaim,
  type TestCluster,
  type TestClusterOptions,
  type TestVolume,
} from './test-cluster.ts'
