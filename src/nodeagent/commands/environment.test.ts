import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { buildCommand, ConfigError, expandVariables, readEnvironment } from './environment.ts'
import { serviceEnvironmentOf } from './start-container.ts'

const pod = { metadata: { name: 'p', namespace: 'n', uid: 'u', labels: { app: 'shop' } } }
const OBJECTS: Record<string, Record<string, string | Uint8Array>> = {
  'configMap n/conf': { color: 'red', 'with=sign': 'x' },
  'secret n/key': { password: Buffer.from('p') },
}
const deps = {
  entries: {
    configMap: async (namespace: string, name: string) => OBJECTS[`configMap ${namespace}/${name}`],
    secret: async (namespace: string, name: string) => OBJECTS[`secret ${namespace}/${name}`],
  },
  resources: { cpus: 2, memoryBytes: 4 * 1024 ** 3 },
  address: '192.0.2.7',
  base: {},
}
const read = (container: object, spec: object = {}, base = {}) =>
  readEnvironment({ ...pod, spec } as never, { name: 'c', ...container } as never, { ...deps, base })

describe("a container's environment", () => {
  it('expands known variables, keeps unknown ones, and unescapes $$', () => {
    const env = { A: '1', B: '$(A)' }
    expect(expandVariables('$(A)-$(B)-$(C)-$$(A)-$A-$', env)).toBe('1-$(A)-$(C)-$(A)-$A-$')
    fc.assert(
      fc.property(fc.string(), (text) => {
        if (!text.includes('$')) expect(expandVariables(text, env)).toBe(text)
        expect(expandVariables(text.replaceAll('$', '$$$$'), env)).toBe(text)
      }),
    )
  })

  it('resolves earlier variables and pod fields', async () => {
    const container = {
      name: 'c',
      env: [
        { name: 'NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
        { name: 'APP', valueFrom: { fieldRef: { fieldPath: "metadata.labels['app']" } } },
        { name: 'BOTH', value: '$(NAME)/$(APP)/$(LATER)' },
        { name: 'LATER', value: 'x' },
      ],
      command: ['echo', '$(BOTH)'],
      args: ['$(LATER)'],
    }
    const env = await read(container)
    expect(env).toEqual({ NAME: 'p', APP: 'shop', BOTH: 'p/shop/$(LATER)', LATER: 'x' })
    expect(buildCommand(container as never, env)).toEqual(['echo', 'p/shop/$(LATER)', 'x'])
  })

  it('names the API server, unless the container defines the variables itself', async () => {
    const base = serviceEnvironmentOf('https://[::1]:7443')
    const container = { name: 'c', env: [{ name: 'KUBERNETES_SERVICE_PORT', value: '1' }] }
    expect(base).toEqual({ KUBERNETES_SERVICE_HOST: '::1', KUBERNETES_SERVICE_PORT: '7443' })
    expect(await read(container, {}, base)).toEqual({ ...base, KUBERNETES_SERVICE_PORT: '1' })
  })

  it('reads entries of ConfigMaps and Secrets; env overrides envFrom', async () => {
    const env = [
      { name: 'PASSWORD', valueFrom: { secretKeyRef: { name: 'key', key: 'password' } } },
      { name: 'C_color', value: 'blue' },
      { name: 'COLOR', valueFrom: { configMapKeyRef: { name: 'conf', key: 'color' } } },
      { name: 'NONE', valueFrom: { configMapKeyRef: { name: 'absent', key: 'k', optional: true } } },
      { name: 'NO_KEY', valueFrom: { secretKeyRef: { name: 'key', key: 'k', optional: true } } },
    ]
    const envFrom = [
      { prefix: 'C_', configMapRef: { name: 'conf' } },
      { secretRef: { name: 'key' } },
      { secretRef: { name: 'absent', optional: true } },
    ]
    expect(await read({ env, envFrom })).toEqual({ PASSWORD: 'p', password: 'p', C_color: 'blue', COLOR: 'red' })
  })

  it('reads addresses and resources, which default to those of the node and are divided and rounded up', async () => {
    const field = (fieldPath: string) => ({ valueFrom: { fieldRef: { fieldPath } } })
    const resource = (name: string, divisor?: string) => ({
      valueFrom: { resourceFieldRef: { resource: name, ...(divisor ? { divisor } : {}) } },
    })
    const env = [
      { name: 'IP', ...field('status.podIP') },
      { name: 'HOSTS', ...field('status.hostIPs') },
      { name: 'CPU', ...resource('limits.cpu') },
      { name: 'MILLIS', ...resource('requests.cpu', '1m') },
      { name: 'MEMORY', ...resource('limits.memory', '1Mi') },
      { name: 'NONE', ...resource('requests.memory') },
    ]
    const container = { env, resources: { limits: { cpu: '1500m' }, requests: { cpu: '250m' } } }
    expect(await read(container, { containers: [{ name: 'c', ...container }] })).toEqual({
      IP: '192.0.2.7',
      HOSTS: '192.0.2.7',
      CPU: '2',
      MILLIS: '250',
      MEMORY: '4096',
      NONE: '0',
    })
  })

  it.each([
    [{ envFrom: [{ secretRef: { name: 's' } }] }, 'secret "s" not found'],
    [{ env: [{ name: 'X', valueFrom: { configMapKeyRef: { name: 'no', key: 'k' } } }] }, 'configmap "no" not found'],
    [
      { env: [{ name: 'X', valueFrom: { secretKeyRef: { name: 'key', key: 'k' } } }] },
      "couldn't find key k in Secret n/key",
    ],
    [{ env: [{ name: 'X', valueFrom: { fieldRef: { fieldPath: 'spec.hostname' } } }] }, 'the field spec.hostname'],
    [
      { env: [{ name: 'X', valueFrom: { fileKeyRef: { volumeName: 'v', path: 'p', key: 'k' } } }] },
      'env X: fileKeyRef is not supported',
    ],
  ])('names the missing object or the unsupported source: %j', async (container, message) => {
    const error = await read(container).catch((failure) => failure)
    expect(error).toBeInstanceOf(ConfigError)
    expect(error.message).toContain(message)
  })
})
