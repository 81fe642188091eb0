// Defaults for tests that run containers as processes of this machine: no ConfigMaps or Secrets, and a small node.
export const HOST_DEFAULTS = {
  entries: { configMap: async () => undefined, secret: async () => undefined },
  resources: { cpus: 2, memoryBytes: 4 * 1024 ** 3 },
  address: '192.0.2.7',
}
