// Freezes plain data recursively, so that it can be shared. Objects that are already frozen are not visited.
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  // Unlike Object.values, these loops allocate nothing. Plain data inherits no enumerable fields.
  if (Array.isArray(value)) for (let index = 0; index < value.length; index++) deepFreeze(value[index])
  else for (const name in value) deepFreeze(value[name])
  return value
}
