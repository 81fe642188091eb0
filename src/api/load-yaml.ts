// Loads the YAML package on first use.

export type Yaml = typeof import('yaml')

/** Loads the CommonJS package `yaml`, which has only a default export in the bundle. */
export async function loadYaml(): Promise<Yaml> {
  const yamlModule: Yaml & { readonly default?: Yaml } = await import('yaml')
  return yamlModule.default ?? yamlModule
}
