package native

import "slices"

// member is a method that the bridge sends, with the macOS that has it, as
// Apple's documentation gives it. The table is the only place of names: the
// bridge takes its selectors from here, so "make mac-check" can ask a real
// system for each.
type member struct {
	class, selector string
	static          bool // a method of the class, not of its instances
	since           Version
}

var (
	macOS10  = Version{10, 0}
	macOS10k = Version{10, 13} // Core ML
	macOS10m = Version{10, 14}
	macOS11  = Version{11, 0}
)

// members is every method that the bridge sends. Methods of a protocol stand
// with a class that has them.
var members = []member{
	{"NSObject", "alloc", true, macOS10},
	{"NSObject", "init", false, macOS10},
	{"NSObject", "retain", false, macOS10},
	{"NSObject", "release", false, macOS10},
	{"NSObject", "respondsToSelector:", false, macOS10},
	{"NSObject", "isKindOfClass:", false, macOS10},
	{"NSAutoreleasePool", "drain", false, Version{10, 4}},
	{"NSString", "stringWithUTF8String:", true, macOS10},
	{"NSString", "UTF8String", false, macOS10},
	{"NSURL", "fileURLWithPath:", true, macOS10},
	{"NSURL", "path", false, macOS10},
	{"NSNumber", "numberWithLongLong:", true, macOS10},
	{"NSNumber", "longLongValue", false, macOS10},
	{"NSArray", "arrayWithObjects:count:", true, macOS10},
	{"NSArray", "count", false, macOS10},
	{"NSArray", "objectAtIndex:", false, macOS10},
	{"NSDictionary", "dictionaryWithObjects:forKeys:count:", true, macOS10},
	{"NSDictionary", "objectForKey:", false, macOS10},
	{"NSDictionary", "allKeys", false, macOS10},
	{"NSError", "domain", false, macOS10},
	{"NSError", "code", false, macOS10},
	{"NSError", "localizedDescription", false, macOS10},
	{"NSError", "userInfo", false, macOS10},

	{"MLModelConfiguration", "setComputeUnits:", false, macOS10m},
	{"MLModelConfiguration", "setFunctionName:", false, statesSince},
	{"MLModel", "compileModelAtURL:error:", true, macOS10k},
	{"MLModel", "modelWithContentsOfURL:configuration:error:", true, macOS10m},
	{"MLModel", "modelDescription", false, macOS10k},
	{"MLModel", "predictionFromFeatures:error:", false, macOS10k},
	{"MLModel", "predictionFromFeatures:options:error:", false, macOS10k},
	{"MLModel", "newState", false, statesSince},
	{"MLModel", "predictionFromFeatures:usingState:error:", false, statesSince},
	{"MLModel", "predictionFromFeatures:usingState:options:error:", false, statesSince},
	{"MLModelDescription", "inputDescriptionsByName", false, macOS10k},
	{"MLModelDescription", "outputDescriptionsByName", false, macOS10k},
	{"MLFeatureDescription", "multiArrayConstraint", false, macOS10k},
	{"MLMultiArrayConstraint", "dataType", false, macOS10k},
	{"MLPredictionOptions", "setOutputBackings:", false, macOS11},
	{"MLDictionaryFeatureProvider", "initWithDictionary:error:", false, macOS10k},
	{"MLDictionaryFeatureProvider", "featureValueForName:", false, macOS10k},
	{"MLFeatureValue", "featureValueWithMultiArray:", true, macOS10k},
	{"MLFeatureValue", "multiArrayValue", false, macOS10k},
	{"MLMultiArray", "initWithShape:dataType:error:", false, macOS10k},
	{"MLMultiArray", "shape", false, macOS10k},
	{"MLMultiArray", "strides", false, macOS10k},
	{"MLMultiArray", "dataType", false, macOS10k},
	{"MLMultiArray", "getBytesWithHandler:", false, bytesSince},
	{"MLMultiArray", "getMutableBytesWithHandler:", false, bytesSince},
	{"MLState", "getMultiArrayForStateNamed:handler:", false, statesSince},

	{"MLComputePlan", "loadContentsOfURL:configuration:completionHandler:", true, planSince},
	{"MLComputePlan", "modelStructure", false, planSince},
	{"MLComputePlan", "computeDeviceUsageForMLProgramOperation:", false, planSince},
	{"MLComputePlan", "estimatedCostOfMLProgramOperation:", false, planSince},
	{"MLComputePlanDeviceUsage", "preferredComputeDevice", false, planSince},
	{"MLComputePlanDeviceUsage", "supportedComputeDevices", false, planSince},
	{"MLComputePlanCost", "weight", false, planSince},
	{"MLModelStructure", "program", false, planSince},
	{"MLModelStructureProgram", "functions", false, planSince},
	{"MLModelStructureProgramFunction", "block", false, planSince},
	{"MLModelStructureProgramBlock", "operations", false, planSince},
	{"MLModelStructureProgramOperation", "operatorName", false, planSince},
	{"MLModelStructureProgramOperation", "outputs", false, planSince},
	{"MLModelStructureProgramOperation", "blocks", false, planSince},
	{"MLModelStructureProgramNamedValueType", "name", false, planSince},
}

// kinds are classes that the bridge names without sending them more than
// alloc, or only asks about.
var kinds = map[string]Version{
	"MLCPUComputeDevice": {14, 0}, "MLGPUComputeDevice": {14, 0}, "MLNeuralEngineComputeDevice": {14, 0},
}

// namesClass reports whether the tables have a class.
func namesClass(name string) bool {
	_, ok := kinds[name]
	return ok || slices.ContainsFunc(members, func(m member) bool { return m.class == name })
}

// memberNamed finds a method in the table; nil when it is not there.
func memberNamed(class, selector string) *member {
	for i := range members {
		if members[i].class == class && members[i].selector == selector {
			return &members[i]
		}
	}
	return nil
}
