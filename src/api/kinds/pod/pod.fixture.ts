// Test support: creates small valid pods, so that a test only specifies the fields that it needs.

export interface PodOptions {
  readonly name?: string
  readonly spec?: object
  readonly container?: object
  readonly volumes?: readonly object[]
}

/** Creates a pod with one container and one claim volume named `data`. */
export const aPod = ({ name = 'db-0', spec = {}, container = {}, volumes = [aClaimVolume] }: PodOptions = {}) => ({
  metadata: { name, namespace: 'shop' },
  spec: { containers: [{ name: 'db', image: 'postgres:17', ...container }], volumes, ...spec },
})

export const aClaimVolume = { name: 'data', persistentVolumeClaim: { claimName: 'db-data' } }

export const anEphemeralVolume = (spec: object = {}, metadata: object = {}) => ({
  name: 'scratch',
  ephemeral: {
    volumeClaimTemplate: {
      metadata,
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
    },
  },
})
