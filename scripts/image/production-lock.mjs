// Returns package.json and package-lock.json for an installation without development dependencies. Optional packages without
// an entry in the lock file, which are for other platforms, are omitted: `npm ci` refuses a lock file that lacks them.

export function withoutDevelopment(manifest, lock) {
  const { devDependencies: _, ...productionManifest } = manifest
  const entries = Object.entries(lock.packages).filter(([, { dev, devOptional }]) => !dev && !devOptional)
  const names = new Set(entries.map(([path]) => path.split('node_modules/').at(-1)))
  const packages = Object.fromEntries(
    entries.map(([path, { devDependencies: __, optionalDependencies, ...entry }]) => {
      const optional = Object.entries(optionalDependencies ?? {}).filter(([name]) => names.has(name))
      return [path, optional.length > 0 ? { ...entry, optionalDependencies: Object.fromEntries(optional) } : entry]
    }),
  )
  return { manifest: productionManifest, lock: { ...lock, packages } }
}
